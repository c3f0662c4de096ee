// SPDX-License-Identifier: Apache-2.0
// States of a plan: pairs of an input and the value that it becomes when a run ends.
#include <thread>

#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PlanState : public PluginTest {
 protected:
  ~PlanState() override {
    for (tn_plan* plan : plans_)
      services.eval->release(plan);
  }
  OwnedGraph parse(std::string_view text) {
    tn_graph* graph = nullptr;
    EXPECT_EQ(text_of(Status(services.graph->parse(ctx_, str(text), &graph))), "");
    return OwnedGraph::take(graph);
  }
  tn_plan* compile(std::string_view text) {
    tn_plan* plan = nullptr;
    OwnedGraph graph = parse(text);
    EXPECT_EQ(text_of(Status(
                  tenon_compile(session_, graph.get(), str(R"({"backend": "reference"})"), &plan))),
              "");
    plans_.push_back(plan);
    return plan;
  }
  tn_plan* beside(tn_plan* other, std::string_view text) {
    tn_plan* plan = nullptr;
    EXPECT_EQ(beside_failure(other, text, &plan), "");
    return plan;
  }
  std::string beside_failure(tn_plan* other, std::string_view text, tn_plan** plan) {
    Status compiled(services.eval->compile_beside(other, parse(text).get(), plan));
    if (*plan) plans_.push_back(*plan);
    return text_of(std::move(compiled));
  }
  void release_first() {
    services.eval->release(plans_.front());
    plans_.erase(plans_.begin());
  }
  Tensor two(std::vector<float> numbers) {
    return *Tensor::of<float>(ctx_, TN_F32, std::vector<int64_t>{2}, numbers);
  }
  // Runs with one input of two numbers, or with none.
  std::string run(tn_plan* plan, std::vector<float> numbers = {}) {
    Tensor input = two(numbers.empty() ? std::vector<float>{0, 0} : numbers);
    DLTensor view = input.dl();
    const DLTensor* inputs[] = {&view};
    results_ = std::make_unique<Collected>(ctx_);
    return text_of(
        Status(tenon_run(plan, inputs, numbers.empty() ? 0 : 1, &results_->raw, nullptr)));
  }
  void set(tn_plan* plan, std::string_view name, std::vector<float> numbers) {
    Tensor tensor = two(numbers);
    DLTensor view = tensor.dl();
    EXPECT_EQ(text_of(Status(services.eval->state_set(plan, str(name), &view))), "");
  }
  std::vector<float> get(tn_plan* plan, std::string_view name) {
    Tensor tensor = two({0, 0});
    DLTensor view = tensor.dl();
    EXPECT_EQ(text_of(Status(services.eval->state_get(plan, str(name), &view))), "");
    const auto* numbers = tensor.data<float>();
    return {numbers, numbers + 2};
  }

  std::unique_ptr<Collected> results_;

 private:
  std::vector<tn_plan*> plans_;
};

// The new value of the one is the old value of the other.
TEST_F(PlanState, PairsChangeTogether) {
  tn_plan* plan = compile(R"(graph {
  input %a: f32[2]
  input %b: f32[2]
  %sum: f32[2] = Add(%a, %b) @sum
  output b = %b
  output sum = %sum
  state %a -> %b
  state %b -> %sum
}
)");
  set(plan, "a", {0, 1});
  set(plan, "b", {1, 2});
  for (int i = 0; i < 5; ++i)
    ASSERT_EQ(run(plan), "");

  EXPECT_THAT(get(plan, "a"), ElementsAre(5, 13));
  EXPECT_THAT(get(plan, "b"), ElementsAre(8, 21));
}

TEST_F(PlanState, RunsOnManyThreadsTakeTurns) {
  constexpr int kThreads = 4, kRuns = 500;
  tn_plan* plan = compile(R"(graph {
  input %x: f32[2]
  input %sum: f32[2]
  %next: f32[2] = Add(%sum, %x) @add
  output next = %next
  state %sum -> %next
}
)");
  auto add = [&] {
    Tensor one = two({1, 2});
    DLTensor view = one.dl();
    const DLTensor* inputs[] = {&view};
    for (int i = 0; i < kRuns; ++i) {
      Collected results(ctx_);
      EXPECT_EQ(text_of(Status(tenon_run(plan, inputs, 1, &results.raw, nullptr))), "");
    }
  };

  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back(add);
  for (std::thread& thread : threads)
    thread.join();

  EXPECT_THAT(get(plan, "sum"), ElementsAre(kThreads * kRuns, 2 * kThreads * kRuns));
}

TEST_F(PlanState, KeepsTheOldValueWhenARunFails) {
  tn_plan* plan = compile(R"(graph {
  input %count: f32[2]
  input %place: f32[2]
  %next: f32[2] = Add(%count, %place) @add
  %at: i64[2] = Cast(%place) {to = dtype i64} @cast
  %read: f32[2] = Gather(%next, %at) @gather
  output read = %read
  output next = %next
  state %count -> %next
}
)");
  EXPECT_EQ(run(plan, {1, 0}), "");
  EXPECT_THAT(run(plan, {7, 0}), HasSubstr("gather"));
  EXPECT_THAT(get(plan, "count"), ElementsAre(1, 0));
  EXPECT_EQ(run(plan, {0, 1}), "");
  EXPECT_THAT(get(plan, "count"), ElementsAre(1, 1));
}

TEST_F(PlanState, OneValueIsTwoStatesAndAnOutput) {
  tn_plan* plan = compile(R"(graph {
  input %p: f32[2]
  input %q: f32[2]
  input %x: f32[2]
  %apart: f32[2] = Sub(%p, %q) @apart
  %next: f32[2] = Add(%p, %x) @add
  %same: f32[2] = Identity(%next) @same
  output next = %next
  output same = %same
  output apart = %apart
  state %p -> %next
  state %q -> %next
}
)");
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(run(plan, {1, 2}), "");

  EXPECT_THAT(results_->numbers<float>(0), ElementsAre(3, 6));
  EXPECT_THAT(results_->numbers<float>(1), ElementsAre(0, 0));
  EXPECT_THAT(get(plan, "p"), ElementsAre(3, 6));
  EXPECT_THAT(get(plan, "q"), ElementsAre(3, 6));
}

TEST_F(PlanState, BelongsToOnePlan) {
  constexpr std::string_view text = R"(graph {
  input %count: f32[2]
  input %x: f32[2]
  %next: f32[2] = Add(%count, %x) @add
  output next = %next
  state %count -> %next
}
)";
  tn_plan *one = compile(text), *other = compile(text);
  ASSERT_EQ(run(one, {1, 1}), "");
  ASSERT_EQ(run(one, {1, 1}), "");
  ASSERT_EQ(run(other, {5, 5}), "");

  EXPECT_THAT(get(one, "count"), ElementsAre(2, 2));
  EXPECT_THAT(get(other, "count"), ElementsAre(5, 5));
}

constexpr std::string_view kCounter = R"(graph {
  input %count: f32[2]
  input %x: f32[2]
  %next: f32[2] = Add(%count, %x) @add
  output next = %next
  state %count -> %next
}
)";
// Another graph, with one more state in front.
constexpr std::string_view kDoubler = R"(graph {
  input %runs: f32[2]
  input %count: f32[2]
  input %x: f32[2]
  %more: f32[2] = Add(%runs, %x) @more
  %next: f32[2] = Add(%count, %count) @double
  output runs = %more
  output next = %next
  state %runs -> %more
  state %count -> %next
}
)";

TEST_F(PlanState, IsInCommonWithPlansBeside) {
  tn_plan *counter = compile(kCounter), *doubler = beside(counter, kDoubler);
  tn_plan* apart = compile(kCounter);
  ASSERT_EQ(run(counter, {1, 2}), "");
  ASSERT_EQ(run(doubler, {1, 1}), "");
  ASSERT_EQ(run(apart, {7, 7}), "");
  ASSERT_EQ(run(counter, {1, 1}), "");

  for (tn_plan* plan : {counter, doubler})
    EXPECT_THAT(get(plan, "count"), ElementsAre(3, 5));
  EXPECT_THAT(get(counter, "runs"), ElementsAre(1, 1)) << "also one that its graph has not";
  EXPECT_THAT(get(apart, "count"), ElementsAre(7, 7));
  set(doubler, "count", {10, 20});
  ASSERT_EQ(run(counter, {1, 1}), "");
  EXPECT_THAT(get(doubler, "count"), ElementsAre(11, 21));
}

TEST_F(PlanState, StaysWhileOneOfThePlansThatHaveItDoes) {
  tn_plan* first = compile(kCounter);
  tn_plan* second = beside(first, kDoubler);
  ASSERT_EQ(run(first, {1, 2}), "");
  release_first();
  ASSERT_EQ(run(second, {0, 0}), "");
  EXPECT_THAT(get(second, "count"), ElementsAre(2, 4));
}

TEST_F(PlanState, IsReadIntoDenseCpuMemory) {
  tn_plan* plan = compile(kCounter);
  float memory[] = {0, 7, 0, 7};
  int64_t shape[] = {2}, strides[] = {2};
  DLTensor apart{memory, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0}, elsewhere = apart;
  elsewhere.device = {kDLCUDA, 0};
  elsewhere.strides = nullptr;
  for (int runs : {0, 1}) {  // the host keeps it, then the backend
    for (DLTensor* out : {&apart, &elsewhere})
      EXPECT_THAT(text_of(Status(services.eval->state_get(plan, str("count"), out))),
                  HasSubstr("state count: expected dense CPU memory"));
    float given[] = {1, 9, 2, 9};
    DLTensor value = apart;
    value.data = given;
    EXPECT_EQ(text_of(Status(services.eval->state_set(plan, str("count"), &value))), "");
    EXPECT_THAT(get(plan, "count"), ElementsAre(1, 2)) << runs;
    ASSERT_EQ(run(plan, {0, 0}), "");
  }
  EXPECT_THAT(memory, ElementsAre(0, 7, 0, 7));
}

// What a program gives for a result lies as it was asked for.
TEST_F(PlanState, ResultsOfOtherStridesOrDevicesAreRefused) {
  tn_plan* plan = compile(R"(graph {
  input %x: f32[2]
  %y: f32[2] = Neg(%x) @neg
  output y = %y
  output x = %x
})");
  Tensor input = two({1, 2});
  DLTensor view = input.dl();
  const DLTensor* inputs[] = {&view};
  struct Given {
    uint64_t wrong;  // the result
    bool is_elsewhere;
    float memory[8] = {};
    int64_t shape[1] = {2}, strides[1] = {2};
  };
  tn_outputs outputs{nullptr, [](void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
                       auto& given = *static_cast<Given*>(self);
                       *out = *proto;
                       out->data = given.memory + 4 * i;
                       out->shape = given.shape;
                       out->strides = nullptr;
                       if (i == given.wrong && given.is_elsewhere) out->device = {kDLCUDA, 0};
                       if (i == given.wrong && !given.is_elsewhere) out->strides = given.strides;
                       return static_cast<tn_status*>(nullptr);
                     }};
  for (uint64_t wrong : {0, 1})
    for (bool is_elsewhere : {false, true}) {
      Given given{wrong, is_elsewhere};
      outputs.ctx = &given;
      Status failed(tenon_run(plan, inputs, 1, &outputs, nullptr));
      EXPECT_EQ(failed.code(), TN_FAILED_PRECONDITION);
      EXPECT_THAT(text_of(failed), HasSubstr(is_elsewhere ? "got 2 id 0" : "got other strides"));
    }
}

TEST_F(PlanState, OfAPlanThatCouldNotStandBesideAnotherIsNotThere) {
  tn_plan* first = compile(kCounter);
  std::string wide(kDoubler);  // `runs`, which is new, is right; `count` is not
  for (const char* name : {"%count: f32[2]", "%next: f32[2]"})
    wide.replace(wide.find(name) + std::string_view(name).size() - 2, 1, "3");
  tn_plan* none = nullptr;
  EXPECT_THAT(beside_failure(first, wide, &none), HasSubstr("state count: expected f32[2]"));

  Tensor tensor = two({0, 0});
  DLTensor view = tensor.dl();
  EXPECT_EQ(Status(services.eval->state_get(first, str("runs"), &view)).code(), TN_NOT_FOUND);
}

TEST_F(PlanState, InCommonHasOneType) {
  tn_plan* first = compile(kCounter);
  std::string wide(kCounter);
  for (size_t at = 0; (at = wide.find("f32[2]", at)) != std::string::npos;)
    wide.replace(at, 6, "f32[3]");
  tn_plan* none = nullptr;
  EXPECT_THAT(beside_failure(first, wide, &none),
              HasSubstr("state count: expected f32[2] as the plan beside it has, got f32[3]"));
  EXPECT_EQ(none, nullptr);
}

}  // namespace
}  // namespace tenon::test
