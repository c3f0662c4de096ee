// SPDX-License-Identifier: Apache-2.0
// What the host promises about devices, on the fake one.
#include "device_fixture.hpp"

namespace tenon::test {
namespace {

constexpr const char* kMlp = R"(graph {
  input %x: f32[batch, 3]
  input %w: f32[3, 2]
  %h: f32[batch, 2] = MatMul(%x, %w) @matmul
  %y: f32[batch, 2] = Relu(%h) @relu
  output y = %y
}
)";

constexpr const char* kCounter = R"(graph {
  input %count: f32[2]
  input %step: f32[2]
  %next: f32[2] = Add(%count, %step) @add
  %twice: f32[2] = Add(%next, %next) @twice
  output next = %next
  output twice = %twice
  state %count -> %next
}
)";

TEST_F(FakeDevice, RunsWhatTheReferenceRuns) {
  Array x({2, 3}, -2, 1), w({3, 2}, 1, 0.5f);
  Results on_device, on_cpu;
  tn_plan* device = compile(kMlp, R"({"backend": "fakedev"})");
  tn_plan* cpu = compile(kMlp, "");

  EXPECT_EQ(run(device, {&x, &w}, &on_device), "");
  EXPECT_EQ(run(cpu, {&x, &w}, &on_cpu), "");

  EXPECT_EQ(on_device.arrays[0]->data, on_cpu.arrays[0]->data);
  EXPECT_NE(describe(device).find("\"copies_per_run\":3"), std::string::npos) << describe(device);
  eval_->release(device);
  eval_->release(cpu);
}

TEST_F(FakeDevice, GivesNodesOfScopeCpuToTheReference) {
  std::string text = kMlp;
  text.insert(text.find("@relu") + 5, " in \"cpu\"");
  Array x({2, 3}, -2, 1), w({3, 2}, 1, 0.5f);
  Results results;
  tn_graph* graph = nullptr;
  std::string failed = take_text(graph_->parse(host_->ctx, str(text), &graph));
  if (!failed.empty()) GTEST_FAIL() << failed;
  graph_->release(graph);
  tn_plan* plan = compile(text, R"({"backend": "fakedev"})");

  EXPECT_EQ(run(plan, {&x, &w}, &results), "");

  EXPECT_NE(describe(plan).find("its scope is cpu"), std::string::npos) << describe(plan);
  EXPECT_EQ(results.arrays[0]->data[0], 0);
  eval_->release(plan);
}

TEST_F(FakeDevice, ReportsAFailureOnTheDeviceAndGoesOn) {
  Array x({2, 3}, -2, 1), w({3, 2}, 1, 0.5f);
  tn_plan* plan = compile(kMlp, R"({"backend": "fakedev", "fail_at": 1})");
  Results first, second, third;

  EXPECT_EQ(run(plan, {&x, &w}, &first), "");
  std::string failure = run(plan, {&x, &w}, &second);
  EXPECT_EQ(run(plan, {&x, &w}, &third), "");

  EXPECT_NE(failure.find("fakedev"), std::string::npos) << failure;
  EXPECT_NE(failure.find("the fake device failed"), std::string::npos) << failure;
  EXPECT_EQ(first.arrays[0]->data, third.arrays[0]->data);
  eval_->release(plan);
}

TEST_F(FakeDevice, CompilesOncePerShape) {
  tn_plan* plan = compile(kMlp, R"({"backend": "fakedev", "plan_cache": 2})");
  for (int64_t batch : {1, 2, 1, 3, 1}) {
    Array x({batch, 3}, 1), w({3, 2}, 1);
    Results results;
    EXPECT_EQ(run(plan, {&x, &w}, &results), "");
    EXPECT_EQ(results.arrays[0]->data, std::vector<float>(static_cast<size_t>(batch) * 2, 3));
  }
  eval_->release(plan);
}

TEST_F(FakeDevice, RunsOnManyThreadsAtOnce) {
  tn_plan* plan = compile(kMlp, R"({"backend": "fakedev"})");
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        float value = static_cast<float>(t * 100) + static_cast<float>(i);
        Array x({2, 3}, value), w({3, 2}, 1);
        Results results;
        bool same = run(plan, {&x, &w}, &results).empty() &&
                    results.arrays[0]->data == std::vector<float>(4, 3 * value);
        wrong[t] += !same;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
  eval_->release(plan);
}

class State : public FakeDevice, public testing::WithParamInterface<const char*> {};

TEST_P(State, StaysWithThePlan) {
  tn_plan* plan = compile(kCounter, GetParam());
  Array step({2}, 1, 1), start({2}, 10, 0), now({2});
  Results results;

  EXPECT_EQ(run(plan, {&step}, &results), "");
  EXPECT_EQ(run(plan, {&step}, &results), "");
  ASSERT_EQ(results.arrays.size(), 1u);
  EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{4, 8}));
  EXPECT_EQ(take_text(eval_->state_get(plan, str("count"), &now.dl)), "");
  EXPECT_EQ(now.data, (std::vector<float>{2, 4}));

  EXPECT_EQ(take_text(eval_->state_set(plan, str("count"), &start.dl)), "");
  EXPECT_EQ(run(plan, {&step}, &results), "");
  EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{22, 24}));
  EXPECT_NE(take_text(eval_->state_get(plan, str("counter"), &now.dl)).find("counter"),
            std::string::npos);
  eval_->release(plan);
}
INSTANTIATE_TEST_SUITE_P(
    Places, State, testing::Values(R"({"backend": "fakedev"})", R"({"backend": "reference"})"));

TEST_F(FakeDevice, NamesAWrongInput) {
  tn_plan* plan = compile(kMlp, R"({"backend": "fakedev"})");
  Array x({2, 4}), w({3, 2});
  Results results;

  std::string failure = run(plan, {&x, &w}, &results);

  EXPECT_NE(failure.find("input x"), std::string::npos) << failure;
  EXPECT_NE(failure.find("f32[batch, 3]"), std::string::npos) << failure;
  EXPECT_NE(failure.find("f32[2, 4]"), std::string::npos) << failure;
  eval_->release(plan);
}

TEST_F(FakeDevice, NamesAnOptionThatNoBackendHas) {
  tn_graph* graph = nullptr;
  ASSERT_EQ(take_text(graph_->parse(host_->ctx, str(kMlp), &graph)), "");
  tn_plan* plan = nullptr;

  std::string failure = take_text(
      tenon_compile(session_, graph, str(R"({"backend": "fakedev", "presicion": "bf16"})"), &plan));

  EXPECT_NE(failure.find("presicion"), std::string::npos) << failure;
  EXPECT_EQ(plan, nullptr);
  graph_->release(graph);
}

}  // namespace
}  // namespace tenon::test
