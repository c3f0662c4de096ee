// SPDX-License-Identifier: Apache-2.0
// Loops as steps of onednn's plan: trip counts, conditions, states, lists, and what stays with the
// host.
#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;

// Both states change in each iteration, by its number and by a captured value. `inputs` are those
// of the loop in front of the states; `end` makes %go.
std::string counted(const std::string& count,
                    const std::string& inputs,
                    const std::string& end = "%go: bool[] = Identity(%cond) @go") {
  return R"(graph {
  constant %five: i64[] = [5]
  constant %four: i64[] = [4]
  constant %none: i64[] = [0]
  constant %less: i64[] = [-3]
  constant %yes: bool[] = x'01'
  constant %no: bool[] = x'00'
  input %h: f32[2, 3]
  input %c: i64[]
  input %w: f32[3]
)" + count +
         R"(  %hn: f32[2, 3], %cn: i64[] = Loop()" + inputs +
         R"(, %h, %c, %w) {captures = 1, body = graph {
      input %i: i64[]
      input %cond: bool[]
      input %h: f32[2, 3]
      input %c: i64[]
      input %w: f32[3]
      constant %most: i64[] = [6]
      %e: f32[3] = Exp(%w) @invariant
      %s: f32[2, 3] = Mul(%h, %e) @mul
      %t: f32[2, 3] = Tanh(%s) @tanh
      %n: i64[] = Add(%c, %i) @count
      )" +
         end + R"(
      output go = %go
      output h = %t
      output c = %n
    }} @loop
  output hn = %hn
  output cn = %cn
})";
}

class Loop : public BothBackends {
 protected:
  // That the plan has the loop itself, not the host beside it.
  void expect_one_step(const std::string& text) {
    expect_same(text);
    Outcome got = run(parse(text), {{"backend", "onednn"}});
    ASSERT_EQ(got.plan["partitions"].size(), 1u) << got.plan.dump(1);
    EXPECT_GE(got.plan["partitions"][0]["kernels"].value("tenon:loop", 0), 1) << got.plan.dump(1);
  }
  // What a run says that is cancelled after so long, or before it begins.
  std::string run_cancelled(const std::string& text, std::chrono::milliseconds after) {
    OwnedGraph graph = parse(text);
    tn_plan* plan = nullptr;
    EXPECT_EQ(text_of(Status(
                  tenon_compile(session_, graph.get(), str(R"({"backend": "onednn"})"), &plan))),
              "");
    std::mt19937 random(7);
    std::vector<Tensor> inputs;
    std::vector<DLTensor> views;
    for (Value value : graph.view().inputs())
      inputs.push_back(input_of(value, random));
    for (const Tensor& input : inputs)
      views.push_back(input.dl());
    std::vector<const DLTensor*> in;
    for (const DLTensor& view : views)
      in.push_back(&view);
    tn_cancel* cancel = nullptr;
    EXPECT_EQ(text_of(Status(tenon_cancel_new(session_, &cancel))), "");
    auto request = [=] {
      std::this_thread::sleep_for(after);
      tenon_cancel_request(cancel);
    };
    std::thread other;
    if (after.count() > 0)
      other = std::thread(request);
    else
      request();
    Collected out(ctx_);
    Status ran(tenon_run(plan, in.data(), in.size(), &out.raw, cancel));
    if (other.joinable()) other.join();
    tenon_cancel_free(cancel);
    services.eval->release(plan);
    return ran.code() == TN_CANCELLED ? "cancelled" : text_of(ran);
  }
  void expect_host(const std::string& text) {
    expect_same(text);
    Outcome got = run(parse(text), {{"backend", "onednn"}});
    EXPECT_THAT(got.plan["partitions"].dump(), HasSubstr("\"backend\":\"host\""));
  }
};

TEST_F(Loop, RunsAsOftenAsItsTripCountSays) {
  for (const char* count : {"%five", "%four", "%none", "%less"})
    expect_one_step(counted("", std::string(count) + ", _"));
}

TEST_F(Loop, TakesATripCountThatTheRunComputes) {
  // An input of -3 to 3: with several seeds the count is odd, even and less than 1.
  const std::string text = counted("  input %m: i64[]\n", "%m, _");
  expect_one_step(text);
  OwnedGraph graph = parse(text);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Outcome expected = run(graph, {{"backend", "reference"}}, seed);
    Outcome got = run(graph, {{"backend", "onednn"}}, seed);
    ASSERT_EQ(got.error, "");
    for (size_t i = 0; i < 2; ++i)
      expect_near(got.outputs[i], expected.outputs[i], 2e-5);
  }
}

TEST_F(Loop, EndsWhereItsConditionSaysSo) {
  const std::string end = "%go: bool[] = Less(%n, %most) @go";
  expect_one_step(counted("", "%five, %yes", end));
  expect_one_step(counted("", "_, %yes", end));
  expect_one_step(counted("", "_, _", end));
  expect_one_step(counted("", "_, %no", end));
  expect_one_step(counted("", "%five, %no"));
}

// The condition of an iteration is what the one before has left.
TEST_F(Loop, ShowsTheConditionToItsBody) {
  expect_one_step(counted("", "%five, %yes", R"(%near: bool[] = Less(%n, %most) @near
      %go: bool[] = And(%near, %cond) @go)"));
}

TEST_F(Loop, WritesListsWhereItsLengthIsKnown) {
  const std::string text = R"(graph {
  constant %m: i64[] = [4]
  input %x: f32[3]
  %n: f32[3], %all: f32[4, 3], %at: i64[4] = Loop(%m, _, %x) {body = graph {
      input %i: i64[]
      input %cond: bool[]
      input %x: f32[3]
      %y: f32[3] = Add(%x, %x) @add
      %j: i64[] = Mul(%i, %i) @square
      output cond = %cond
      output n = %y
      output all = %y
      output at = %j
    }} @loop
  output n = %n
  output all = %all
  output at = %at
})";
  expect_one_step(text);
}

TEST_F(Loop, OfALoopIsAStepOfItsBody) {
  expect_one_step(R"(graph {
  constant %m: i64[] = [3]
  input %x: f32[2]
  %n: f32[2] = Loop(%m, _, %x) {body = graph {
      input %i: i64[]
      input %cond: bool[]
      input %x: f32[2]
      constant %limit: f32[] = [0.5]
      %y: f32[2] = Loop(%i, _, %x) {body = graph {
          input %k: i64[]
          input %c: bool[]
          input %x: f32[2]
          %e: f32[2] = Sin(%x) @sin
          output c = %c
          output y = %e
        }} @inner
      %z: f32[2] = Mul(%y, %limit) @mul
      output cond = %cond
      output n = %z
    }} @outer
  output n = %n
})");
}

TEST_F(Loop, WithListsOfUnknownLengthStaysWithTheHost) {
  expect_host(R"(graph {
  input %m: i64[]
  input %x: f32[3]
  %n: f32[3], %all: f32[?, 3] = Loop(%m, _, %x) {body = graph {
      input %i: i64[]
      input %cond: bool[]
      input %x: f32[3]
      %y: f32[3] = Add(%x, %x) @add
      output cond = %cond
      output n = %y
      output all = %y
    }} @loop
  output n = %n
  output all = %all
})");
}

// The result of the Concat is overwritten in each iteration.
TEST_F(Loop, KeepsAnInputOfAConcatThatIsTheSameInEachIteration) {
  expect_one_step(R"(graph {
  constant %m: i64[] = [4]
  input %s: f32[64]
  input %w: f32[64]
  %n: f32[64] = Loop(%m, _, %s, %w) {captures = 1, body = graph {
      input %i: i64[]
      input %cond: bool[]
      input %s: f32[64]
      input %w: f32[64]
      constant %first: i64[1] = [0]
      constant %end: i64[1] = [64]
      %a: f32[64] = Exp(%w) @same
      %b: f32[64] = Sigmoid(%s) @changes
      %c: f32[128] = Concat(%a, %b) {axis = 0} @join
      %d: f32[128] = Softplus(%c) @over
      %e: f32[64] = Slice(%d, %first, %end) @slice
      %t: f32[64] = Add(%e, %s) @add
      output cond = %cond
      output n = %t
    }} @loop
  output n = %n
})");
}

// The trip count is constant, yet the condition may end the loop before.
TEST_F(Loop, WithListsAndAConditionStaysWithTheHost) {
  expect_host(R"(graph {
  constant %m: i64[] = [4]
  constant %limit: f32[] = [5]
  input %x: f32[]
  %n: f32[], %all: f32[?] = Loop(%m, _, %x) {body = graph {
      input %i: i64[]
      input %cond: bool[]
      input %x: f32[]
      constant %limit: f32[] = [1.5]
      %y: f32[] = Add(%x, %limit) @add
      %go: bool[] = Less(%y, %limit) @less
      output cond = %go
      output n = %y
      output all = %y
    }} @loop
  output n = %n
  output all = %all
})");
}

// Cancelled a moment after the run has begun.
TEST_F(Loop, WithoutEndIsCancelled) {
  const std::string inner = R"(%y: f32[2] = Loop(_, _, %x) {body = graph {
          input %k: i64[]
          input %c: bool[]
          input %x: f32[2]
          %e: f32[2] = Sin(%x) @sin
          output c = %c
          output y = %e
        }} @inner
)";
  const std::string alone = "graph {\n input %x: f32[2]\n" + inner + "output y = %y\n}";
  const std::string within = R"(graph {
  constant %m: i64[] = [3]
  input %x: f32[2]
  %n: f32[2] = Loop(%m, _, %x) {body = graph {
      input %i: i64[]
      input %cond: bool[]
      input %x: f32[2]
      )" + inner + R"(
      output cond = %cond
      output n = %y
    }} @outer
  output n = %n
})";
  for (const std::string& text : {alone, within})
    EXPECT_EQ(run_cancelled(text, std::chrono::milliseconds(30)), "cancelled") << text;
}

TEST_F(Loop, APlanThatIsCancelledRunsNoStep) {
  EXPECT_EQ(run_cancelled(R"(graph {
  input %x: f32[3, 4]
  input %w: f32[4, 5]
  %y: f32[3, 5] = MatMul(%x, %w) @product
  output y = %y
})",
                          std::chrono::milliseconds(0)),
            "cancelled");
}

TEST_F(Loop, SaysWhatIsWrongWithTheDataOfAnIteration) {
  Outcome got = run(parse(R"(graph {
  constant %m: i64[] = [4]
  input %x: f32[1]
  %n: f32[1] = Loop(%m, _, %x) {body = graph {
      input %i: i64[]
      input %cond: bool[]
      input %x: f32[1]
      constant %table: f32[2] = [1, 2]
      constant %axis: i64[1] = [0]
      %j: i64[1] = Unsqueeze(%i, %axis) @unsqueeze
      %g: f32[1] = Gather(%table, %j) @gather
      %s: f32[1] = Add(%x, %g) @add
      output cond = %cond
      output n = %s
    }} @loop
  output n = %n
})"),
                    {{"backend", "onednn"}});
  EXPECT_THAT(got.error, HasSubstr("node gather: indices: expected -2..1, got 2"));
}

}  // namespace
}  // namespace tenon::test
