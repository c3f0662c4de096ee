// SPDX-License-Identifier: Apache-2.0
// Weights of a convolution that a plan keeps lie as the backend likes; whoever looks at them from
// outside, and every batch size, sees the same numbers as on the reference.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

using Numbers = std::vector<double>;

// Channels are no multiples of 16. The weight and its slot are states; the update is pointwise.
constexpr const char* kTraining = R"(graph {
  input %x: f32[n, 20, 6, 6]
  input %t: f32[n, 24, 6, 6]
  input %w: f32[24, 20, 3, 3]
  input %m: f32[24, 20, 3, 3]
  constant %shape: i64[4] = [24, 20, 3, 3]
  constant %keep: f32[] = [0.9]
  constant %rate: f32[] = [0.001]
  %y: f32[n, 24, 6, 6] = Conv(%x, %w) {pads = ints [1, 1, 1, 1]} @conv
  %d: f32[n, 24, 6, 6] = Sub(%y, %t) @error
  %dx: f32[n, 20, 6, 6] = ConvTranspose(%d, %w) {pads = ints [1, 1, 1, 1]} @back
  %g: f32[24, 20, 3, 3] = tenon:ConvWeightGrad(%x, %d, %shape) {pads = ints [1, 1, 1, 1]} @grad
  %k: f32[24, 20, 3, 3] = Mul(%m, %keep) @keep
  %m2: f32[24, 20, 3, 3] = Add(%k, %g) @slot
  %s: f32[24, 20, 3, 3] = Mul(%m2, %rate) @scaled
  %w2: f32[24, 20, 3, 3] = Sub(%w, %s) @update
  output y = %y
  output dx = %dx
  output w2 = %w2
  output m2 = %m2
  state %w -> %w2
  state %m -> %m2
})";

constexpr const char* kEvaluation = R"(graph {
  input %x: f32[n, 20, 6, 6]
  input %w: f32[24, 20, 3, 3]
  %y: f32[n, 24, 6, 6] = Conv(%x, %w) {pads = ints [1, 1, 1, 1]} @conv
  %same: f32[24, 20, 3, 3] = Identity(%w) @same
  output y = %y
  output same = %same
  state %w -> %same
})";

// The slot without its weight: nothing says here how the weight lies.
constexpr const char* kHalving = R"(graph {
  input %m: f32[24, 20, 3, 3]
  constant %half: f32[] = [0.5]
  %h: f32[24, 20, 3, 3] = Mul(%m, %half) @half
  output h = %h
  state %m -> %h
})";

class KeptWeights : public BothBackends {
 protected:
  struct Plan {
    Plan() = default;
    Plan(Plan&& other) noexcept : raw(std::exchange(other.raw, nullptr)) {}
    ~Plan() {
      if (raw != nullptr) services.eval->release(raw);
    }
    tn_plan* raw = nullptr;
  };

  Plan compile(const char* text, const char* backend) {
    Plan plan;
    json options = {{"backend", backend}};
    if (std::string(backend) == "onednn") options["threads"] = 2;
    EXPECT_EQ(
        text_of(Status(tenon_compile(session_, parse(text).get(), str(options.dump()), &plan.raw))),
        "");
    return plan;
  }

  Tensor random(std::vector<int64_t> dims, uint32_t seed) {
    std::mt19937 numbers(seed);
    std::uniform_real_distribution<float> reals(-1, 1);
    Result<Tensor> made = Tensor::zeros(ctx_, TN_F32, dims);
    for (int64_t i = 0, n = element_count(made->dl()); i < n; ++i)
      made->data<float>()[i] = reals(numbers);
    return *made;
  }

  std::vector<Numbers> run(const Plan& plan, const std::vector<Tensor>& inputs) {
    std::vector<DLTensor> views;
    for (const Tensor& input : inputs)
      views.push_back(input.dl());
    std::vector<const DLTensor*> in;
    for (const DLTensor& view : views)
      in.push_back(&view);
    Collected out(ctx_);
    EXPECT_EQ(text_of(Status(tenon_run(plan.raw, in.data(), in.size(), &out.raw, nullptr))), "");
    std::vector<Numbers> results;
    for (const Tensor& tensor : out.tensors)
      results.push_back(numbers_of(tensor));
    return results;
  }

  std::vector<Numbers> train(const Plan& plan, int64_t batch, uint32_t seed) {
    return run(plan, {random({batch, 20, 6, 6}, seed), random({batch, 24, 6, 6}, seed + 100)});
  }

  Tensor state(const Plan& plan, const char* name) {
    Result<Tensor> made = Tensor::zeros(ctx_, TN_F32, std::vector<int64_t>{24, 20, 3, 3});
    DLTensor out = made->dl();
    EXPECT_EQ(text_of(Status(services.eval->state_get(plan.raw, str(name), &out))), "");
    return *made;
  }
  void set(const Plan& plan, const char* name, const Tensor& value) {
    DLTensor from = value.dl();
    EXPECT_EQ(text_of(Status(services.eval->state_set(plan.raw, str(name), &from))), "");
  }

  void expect_all_near(const std::vector<Numbers>& got, const std::vector<Numbers>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      expect_near(got[i], expected[i], 2e-5);
  }
  void expect_same_states(const Plan& got, const Plan& expected) {
    for (const char* name : {"w", "m"})
      expect_near(numbers_of(state(got, name)), numbers_of(state(expected, name)), 2e-5);
  }
};

TEST_F(KeptWeights, AllBatchSizesTrainTheSameWeights) {
  Plan got = compile(kTraining, "onednn");
  Plan expected = compile(kTraining, "reference");
  set(got, "w", random({24, 20, 3, 3}, 1));
  set(expected, "w", random({24, 20, 3, 3}, 1));

  uint32_t seed = 10;
  for (int64_t batch : {4, 4, 3, 4, 1}) {
    ++seed;
    expect_all_near(train(got, batch, seed), train(expected, batch, seed));
    expect_same_states(got, expected);
  }
}

TEST_F(KeptWeights, AreReadAndSetRowMajor) {
  Plan plan = compile(kTraining, "onednn");
  Tensor weights = random({24, 20, 3, 3}, 1);
  set(plan, "w", weights);
  EXPECT_EQ(numbers_of(state(plan, "w")), numbers_of(weights));
  train(plan, 4, 11);
  Tensor w = state(plan, "w");
  Tensor m = state(plan, "m");

  set(plan, "m", m);  // what was read comes back as it was
  EXPECT_EQ(numbers_of(state(plan, "m")), numbers_of(m));
  Plan other = compile(kTraining, "onednn");
  set(other, "w", w);
  set(other, "m", m);

  EXPECT_EQ(train(other, 4, 12), train(plan, 4, 12));
  EXPECT_EQ(numbers_of(state(other, "w")), numbers_of(state(plan, "w")));
}

TEST_F(KeptWeights, AreEvaluatedByAnotherPlan) {
  Plan training = compile(kTraining, "onednn");
  set(training, "w", random({24, 20, 3, 3}, 1));
  train(training, 4, 11);
  Plan got = compile(kEvaluation, "onednn");
  Plan expected = compile(kEvaluation, "reference");
  for (const Plan* plan : {&got, &expected})
    set(*plan, "w", state(training, "w"));
  Tensor x = random({2, 20, 6, 6}, 3);

  for (int i = 0; i < 2; ++i)
    expect_all_near(run(got, {x}), run(expected, {x}));
}

TEST_F(KeptWeights, SlotsGoThroughAPlanWithoutTheWeight) {
  Plan training = compile(kTraining, "onednn");
  set(training, "w", random({24, 20, 3, 3}, 1));
  train(training, 4, 11);
  Numbers before = numbers_of(state(training, "m"));
  Plan halving = compile(kHalving, "onednn");
  set(halving, "m", state(training, "m"));

  run(halving, {});

  Numbers after = numbers_of(state(halving, "m"));
  for (size_t i = 0; i < before.size(); ++i)
    ASSERT_EQ(after[i], before[i] / 2);
}

}  // namespace
}  // namespace tenon::test
