// SPDX-License-Identifier: Apache-2.0
// Plans whose parts lie on several devices and the CPU, and what fails in the midst of them.
#include "device_fixture.hpp"

namespace tenon::test {
namespace {

constexpr const char* kOnDevice = R"({"backend": "fakedev"})";

constexpr const char* kPositive = R"(graph {
  input %x: f32[n]
  input %zero: f32[1]
  %flags: bool[n] = Greater(%x, %zero) @greater
  %kept: f32[?] = Compress(%x, %flags) @compress
  %twice: f32[?] = Add(%kept, %kept) @twice WHERE
  %y: f32[?] = Neg(%twice) @neg
  output y = %y
}
)";

constexpr const char* kMlp = R"(graph {
  input %x: f32[batch, 3]
  input %w: f32[3, 2]
  %h: f32[batch, 2] = MatMul(%x, %w) @matmul WHERE
  %y: f32[batch, 2] = Relu(%h) @relu
  output y = %y
}
)";

std::string placed(std::string text, const std::string& where) {
  size_t at = text.find("WHERE");
  return text.replace(at, 5, where);
}

class Parts : public FakeDevice {};

TEST_F(Parts, ShapesThatDependOnDataAreAskedForLate) {
  for (const char* where : {"", "in \"cpu\"", "in \"second\""}) {
    tn_plan* plan =
        compile(placed(kPositive, where), R"({"backend": ["fakedev", "fakedev.second"]})");
    Array zero({1}), some({4}, -2, 1), none({4}, -9, 1), all({4}, 1, 1);
    Results results;

    EXPECT_EQ(run(plan, {&some, &zero}, &results), "") << where;
    EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{-2})) << where;
    EXPECT_EQ(run(plan, {&all, &zero}, &results), "") << where;
    EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{-2, -4, -6, -8})) << where;
    EXPECT_EQ(run(plan, {&none, &zero}, &results), "") << where;
    EXPECT_EQ(results.arrays[0]->data, std::vector<float>{}) << where;
    eval_->release(plan);
  }
}

TEST_F(Parts, BetweenTwoDevicesAValueGoesThroughTheCpu) {
  tn_plan* plan = compile(placed(kMlp, "in \"second\""),
                          R"({"backend": ["fakedev", "fakedev.second"], "delay_us": 100})");
  for (int i = 0; i < 50; ++i) {
    float value = static_cast<float>(i);
    Array x({2, 3}, value), w({3, 2}, 1);
    Results results;
    EXPECT_EQ(run(plan, {&x, &w}, &results), "");
    EXPECT_EQ(results.arrays[0]->data, std::vector<float>(4, 3 * value));
  }
  EXPECT_NE(describe(plan).find("\"copies_per_run\":5"), std::string::npos) << describe(plan);
  eval_->release(plan);
}

// What a backend took and cannot do, another one does; the rest stays where it is.
TEST_F(Parts, ANodeThatIsDeclinedFallsBackAlone) {
  for (const char* where : {"in \"declined\"", "in \"declined late\""}) {
    tn_plan* plan = compile(placed(kMlp, where), kOnDevice);
    Array x({2, 3}, 1), w({3, 2}, 1);
    Results results;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(run(plan, {&x, &w}, &results), "") << where;
      EXPECT_EQ(results.arrays[0]->data, std::vector<float>(4, 3)) << where;
    }
    std::string report = describe(plan);
    EXPECT_NE(report.find("\"node\":\"matmul\""), std::string::npos) << report;
    EXPECT_NE(report.find("declined when it"), std::string::npos) << report;
    bool is_late = std::string(where).find("late") != std::string::npos;
    EXPECT_EQ(report.find("\"node\":\"relu\"") == std::string::npos, !is_late) << report;
    eval_->release(plan);
  }
}

TEST_F(Parts, AFailureBeforeAPartOfTheCpuIsTheRuns) {
  tn_plan* plan = compile(placed(kMlp, ""), R"({"backend": "fakedev", "fail_at": 0})");
  std::string text = placed(kMlp, "");
  text.insert(text.find("@relu") + 5, " in \"cpu\"");
  tn_plan* mixed = compile(text, R"({"backend": "fakedev", "fail_at": 0})");
  Array x({2, 3}, 1), w({3, 2}, 1);

  for (tn_plan* each : {plan, mixed}) {
    Results results;
    std::string failure = run(each, {&x, &w}, &results);
    EXPECT_NE(failure.find("the fake device failed"), std::string::npos) << failure;
    EXPECT_NE(failure.find("fakedev"), std::string::npos) << failure;
    EXPECT_EQ(run(each, {&x, &w}, &results), "");
    EXPECT_EQ(results.arrays[0]->data, std::vector<float>(4, 3));
    eval_->release(each);
  }
}

constexpr const char* kSum = R"(graph {
  constant %axes: i64[1] = [0]
  input %sum: f32[2]
  input %x: f32[n, 2]
  %part: f32[2] = ReduceSum(%x, %axes) {keepdims = 0} @part
  %next: f32[2] = Add(%sum, %part) @add
  %seen: f32[2] = Identity(%next) @seen
  output next = %next
  output seen = %seen
  state %sum -> %next
}
)";

TEST_F(Parts, StateIsSharedByTheFormsForAllShapes) {
  tn_plan* plan = compile(kSum, kOnDevice);
  Results results;
  for (int64_t n : {1, 3, 1, 2}) {
    Array x({n, 2}, 1);
    EXPECT_EQ(run(plan, {&x}, &results), "");
  }
  EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{7, 7}));
  eval_->release(plan);
}

TEST_F(Parts, AFailedRunLeavesTheStateAsItWas) {
  tn_plan* plan = compile(kSum, R"({"backend": "fakedev", "fail_at": 1})");
  Array x({1, 2}, 1), now({2});
  Results results;

  EXPECT_EQ(run(plan, {&x}, &results), "");
  EXPECT_NE(run(plan, {&x}, &results), "");
  EXPECT_EQ(take_text(eval_->state_get(plan, str("sum"), &now.dl)), "");

  EXPECT_EQ(now.data, (std::vector<float>{1, 1}));
  EXPECT_EQ(run(plan, {&x}, &results), "");
  EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{2, 2}));
  eval_->release(plan);
}

TEST_F(Parts, MemoryThatRunsOutNamesValueAndDevice) {
  tn_plan* plan = compile(R"(graph {
  constant %axes: i64[2] = [0, 1]
  input %x: f32[n, 1]
  input %y: f32[1, n]
  %big: f32[n, n] = Add(%x, %y) @outer
  %sum: f32[] = ReduceSum(%big, %axes) {keepdims = 0} @sum in "second"
  output sum = %sum
}
)",
                          R"({"backend": ["fakedev", "fakedev.second"]})");
  Array x({8000, 1}), y({1, 8000}), small({2, 1}, 1), wide({1, 2}, 1);
  Results results;

  std::string failure = run(plan, {&x, &y}, &results);
  EXPECT_EQ(run(plan, {&small, &wide}, &results), "");

  EXPECT_NE(failure.find("memory for value big on fakedev"), std::string::npos) << failure;
  EXPECT_NE(failure.find("out of device memory: 256000000 bytes"), std::string::npos) << failure;
  EXPECT_EQ(results.arrays[0]->data, std::vector<float>{8});
  eval_->release(plan);
}

TEST_F(Parts, BodiesOfControlFlowRunOnTheDeviceToo) {
  tn_plan* plan = compile(R"(graph {
  input %c: bool[]
  input %x: f32[2]
  %y: f32[2] = If(%c, %x) {captures = 1, else_branch = graph {
      input %x: f32[2]
      %a: f32[2] = Neg(%x) @a
      output a = %a
    }, then_branch = graph {
      input %x: f32[2]
      %b: f32[2] = Add(%x, %x) @b
      output b = %b
    }} @if
  output y = %y
}
)",
                          kOnDevice);
  Array x({2}, 3);
  bool yes = true;
  DLTensor condition{&yes, {kDLCPU, 0}, 0, {kDLBool, 8, 1}, nullptr, nullptr, 0};
  const DLTensor* in[] = {&condition, &x.dl};
  Results results;
  tn_outputs outputs = results.outputs();

  EXPECT_EQ(take_text(tenon_run(plan, in, 2, &outputs, nullptr)), "");
  EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{6, 6}));
  yes = false;
  EXPECT_EQ(take_text(tenon_run(plan, in, 2, &outputs, nullptr)), "");
  EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{-3, -3}));
  eval_->release(plan);
}

TEST_F(Parts, OneValueMayBeSeveralOutputs) {
  tn_plan* plan = compile(R"(graph {
  input %x: f32[2]
  %y: f32[2] = Neg(%x) @neg
  output first = %y
  output again = %y
  output given = %x
}
)",
                          kOnDevice);
  Array x({2}, 3);
  Results results;

  EXPECT_EQ(run(plan, {&x}, &results), "");

  EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{-3, -3}));
  EXPECT_EQ(results.arrays[1]->data, (std::vector<float>{-3, -3}));
  EXPECT_EQ(results.arrays[2]->data, (std::vector<float>{3, 3}));
  eval_->release(plan);
}

TEST_F(Parts, AProfileNamesTheDeviceAndItsTime) {
  tn_plan* plan = compile(placed(kMlp, ""), kOnDevice);
  Array x({2, 3}, 1), w({3, 2}, 1);
  const DLTensor* in[] = {&x.dl, &w.dl};
  std::string text;
  tn_sink sink = into(&text);

  EXPECT_EQ(take_text(eval_->profile(plan, in, 2, &sink)), "");

  EXPECT_NE(text.find("\"backend\":\"fakedev\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"name\":\"matmul\""), std::string::npos) << text;
  EXPECT_EQ(text.find("\"ns\":0,"), std::string::npos) << text;
  eval_->release(plan);
}

TEST_F(Parts, AProfileIsTakenFromTwoThreadsAtOnce) {
  tn_plan* plan = compile(placed(kMlp, " in \"cpu\""), kOnDevice);
  Array x({2, 3}, 1), w({3, 2}, 1);
  const DLTensor* in[] = {&x.dl, &w.dl};
  auto profile = [&](std::string& wrong) {
    for (int i = 0; i < 200 && wrong.empty(); ++i) {
      std::string text;
      tn_sink sink = into(&text);
      wrong = take_text(eval_->profile(plan, in, 2, &sink));
      for (const char* name : {"\"name\":\"matmul\"", "\"name\":\"relu\""})
        if (text.find(name) == std::string::npos) wrong += text;
    }
  };
  std::string here, there;

  std::thread other(profile, std::ref(there));
  profile(here);
  other.join();

  EXPECT_EQ(here, "");
  EXPECT_EQ(there, "");
  eval_->release(plan);
}

TEST_F(Parts, AStopRequestReachesTheDevice) {
  tn_plan* plan = compile(placed(kMlp, ""), kOnDevice);
  Array x({2, 3}, 1), w({3, 2}, 1);
  const DLTensor* in[] = {&x.dl, &w.dl};
  Results results;
  tn_outputs outputs = results.outputs();
  tn_cancel* cancel = nullptr;
  ASSERT_EQ(take_text(tenon_cancel_new(session_, &cancel)), "");
  tenon_cancel_request(cancel);

  tn_status* status = tenon_run(plan, in, 2, &outputs, cancel);

  EXPECT_EQ(tenon_status_code(status), TN_CANCELLED);
  tenon_status_release(status);
  EXPECT_EQ(run(plan, {&x, &w}, &results), "");
  tenon_cancel_free(cancel);
  eval_->release(plan);
}

TEST_F(Parts, ADeviceThatCannotBeUsedIsPassedOver) {
  // The first entry of the second backend's list says why it is no device.
  tn_plan* plan = compile(placed(kMlp, ""), R"({"backend": "fakedev.second"})");
  Array x({2, 3}, 1), w({3, 2}, 1);
  Results results;

  EXPECT_EQ(run(plan, {&x, &w}, &results), "");

  EXPECT_EQ(results.arrays[0]->data, std::vector<float>(4, 3));
  eval_->release(plan);
}

}  // namespace
}  // namespace tenon::test
