// SPDX-License-Identifier: Apache-2.0
// Parts that the kit compiles and runs by itself, and what it keeps beside them.
#include <gmock/gmock.h>

#include "tenon/sdk/backend/weights.hpp"

#include "kit_fixture.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BackendExecutable : public BackendKit {
 protected:
  using Floats = std::vector<float>;

  backend::Executable& compile(const std::string& lines, const backend::Kernels& kernels = {}) {
    auto made = backend::compile(ctx_, parse(lines), kernels);
    EXPECT_EQ(text_of(made.ok() ? Status() : std::move(made).status()), "");
    exe_ = std::move(*made);
    return *exe_;
  }
  // Inputs and results are vectors of floats.
  std::string run(std::vector<Floats> inputs, uint32_t flags = 0) {
    std::vector<DenseView> views;
    std::vector<const DLTensor*> pointers;
    for (const Floats& one : inputs)
      views.emplace_back(TN_F32, std::vector<int64_t>{static_cast<int64_t>(one.size())},
                         one.data());
    for (const DenseView& view : views)
      pointers.push_back(view.get());
    results_ = std::make_unique<Collected>(ctx_);
    std::vector<char> workspace(exe_->workspace() + 64);
    tn_exec exec{};
    exec.struct_size = sizeof exec;
    exec.flags = flags;
    exec.workspace = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) &
                                             ~uintptr_t{63});
    exec.workspace_bytes = exe_->workspace();
    return text_of(
        exe_->run(states_.get(), pointers.data(), pointers.size(), &results_->raw, exec));
  }
  Floats state(const std::string& name) {
    Floats out(2);
    DenseView view(TN_F32, std::vector<int64_t>{2}, out.data());
    EXPECT_EQ(text_of(states_->get(name, view.get())), "");
    return out;
  }
  void set(const std::string& name, Floats numbers) {
    EXPECT_EQ(
        text_of(states_->set(name, *DenseView(TN_F32, std::vector<int64_t>{2}, numbers.data()))),
        "");
  }

  std::unique_ptr<backend::Executable> exe_;
  std::unique_ptr<Collected> results_;
  std::unique_ptr<backend::StateStore> states_;
};

TEST_F(BackendExecutable, RunsGroupsViewsAndRows) {
  compile(R"(  input %x: f32[4]
  %a: f32[4] = Exp(%x) @a
  %b: f32[4] = Neg(%a) @b
  constant %shape: i64[2] = [2, 2]
  %c: f32[2, 2] = Reshape(%b, %shape) @c
  %d: f32[2, 2] = Transpose(%c) {perm = ints [1, 0]} @d
  output d = %d
  output x = %x
  output b = %b)");

  EXPECT_EQ(run({{0, 1, 2, 3}}, TN_EXEC_PROFILE), "");
  auto e = [](double x) { return static_cast<float>(-std::exp(x)); };
  EXPECT_THAT(results_->numbers<float>(0), ElementsAre(e(0), e(2), e(1), e(3)));
  EXPECT_THAT(results_->numbers<float>(1), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(results_->numbers<float>(2), ElementsAre(e(0), e(1), e(2), e(3)));
  EXPECT_THAT(exe_->profile(), HasSubstr("\"kernel\": \"expression\""));
  json described = json::parse(exe_->describe());
  EXPECT_EQ(described["kernels"]["expression"], 1);  // one pass for a and b
  EXPECT_EQ(run({{0, 1}}), "input 0: shape or type is not the compiled one");
}

TEST_F(BackendExecutable, ReadsInputsThatAreDenseAlone) {
  const std::vector<int64_t> shape = {2, 3}, other = {3, 2};
  std::vector<int64_t> dense = {3, 1}, by_columns = {1, 2};
  const DenseView compiled(TN_F32, shape);
  std::vector<int64_t> extents = shape;
  DLTensor given = *compiled;
  given.shape = extents.data();
  given.strides = nullptr;
  EXPECT_EQ(backend::why_not_as_compiled(given, *compiled), nullptr);
  given.strides = dense.data();
  EXPECT_EQ(backend::why_not_as_compiled(given, *compiled), nullptr);
  given.strides = by_columns.data();
  EXPECT_STREQ(backend::why_not_as_compiled(given, *compiled), "expected dense row-major memory");
  extents = {0, 3};
  EXPECT_EQ(backend::why_not_as_compiled(given, *DenseView(TN_F32, extents)), nullptr);
  EXPECT_STREQ(backend::why_not_as_compiled(*DenseView(TN_I32, shape), *compiled),
               "shape or type is not the compiled one");
  EXPECT_STREQ(backend::why_not_as_compiled(*DenseView(TN_F32, other), *compiled),
               "shape or type is not the compiled one");
}

TEST_F(BackendExecutable, RunsABackendsKernelWithItsEpilogue) {
  backend::Kernel twice{"Softmax", [](const auto&, const auto&) { return std::string(); }, 0,
                        [](const auto& graph, const auto&, const auto& op, const auto&) {
                          return graph.node(op.node).op == "Add";
                        },
                        [](const auto&, const auto& node,
                           const backend::Epilogue& epilogue) -> Result<backend::Step> {
                          backend::Step step;
                          step.kernel = "twice";
                          step.scratch_bytes = 8;
                          size_t at = node.inputs.size(), n = epilogue.ops.size();
                          step.work = [at, n](const backend::Call& call) -> Status {
                            std::memset(call.scratch, 0, 8);
                            for (size_t i = 0; i < 2; ++i) {
                              call.output<float>()[i] = 2 * call.input<float>(0)[i];
                              if (n > 0) call.output<float>()[i] += call.input<float>(at)[i];
                            }
                            return {};
                          };
                          return step;
                        }};
  compile(R"(  input %x: f32[2]
  input %y: f32[2]
  %late: f32[2] = Neg(%y) @late
  %a: f32[2] = Softmax(%x) @a
  %b: f32[2] = Add(%a, %late) @b
  output b = %b)",
          {twice});

  EXPECT_EQ(run({{1, 2}, {10, 20}}), "");
  EXPECT_THAT(results_->numbers<float>(0), ElementsAre(2 - 10, 4 - 20));
  EXPECT_THAT(exe_->describe(), HasSubstr("\"twice\": 1"));
}

TEST_F(BackendExecutable, KeepsStatesUntilARunHasEnded) {
  states_ = std::make_unique<backend::StateStore>(ctx_);
  compile(R"(  input %a: f32[2]
  input %b: f32[2]
  input %place: f32[2]
  %sum: f32[2] = Add(%a, %b) @sum
  %at: i64[2] = Cast(%place) {to = dtype i64} @cast
  %read: f32[2] = Gather(%sum, %at) @gather
  output b = %b
  output sum = %sum
  output read = %read
  state %a -> %b
  state %b -> %sum)");
  set("a", {0, 1});
  set("b", {1, 2});
  for (int i = 0; i < 5; ++i)
    ASSERT_EQ(run({{0, 1}}), "");
  EXPECT_THAT(state("a"), ElementsAre(5, 13));
  EXPECT_THAT(state("b"), ElementsAre(8, 21));

  EXPECT_THAT(run({{7, 0}}), HasSubstr("node gather"));
  EXPECT_THAT(state("a"), ElementsAre(5, 13));
}

TEST_F(BackendExecutable, AStateIsLaidOutAsItsPlanWants) {
  backend::StateStore store(ctx_);
  Floats numbers = {0, 1, 2, 3, 4, 5}, out(6);
  DenseView given(TN_F32, std::vector<int64_t>{2, 3}, numbers.data());
  DenseView back(TN_F32, std::vector<int64_t>{2, 3}, out.data());
  EXPECT_EQ(store.get("w", back.get()).code(), TN_NOT_FOUND);
  ASSERT_TRUE(store.set("w", *given).ok());

  Result<void*> place = store.place("w", *given, {1, 2});
  ASSERT_TRUE(place.ok());
  const auto* inside = static_cast<const float*>(*place);
  EXPECT_EQ(Floats(inside, inside + 6), Floats({0, 3, 1, 4, 2, 5}));
  ASSERT_TRUE(store.get("w", back.get()).ok());
  EXPECT_EQ(out, numbers);
  DenseView other(TN_F32, std::vector<int64_t>{3, 2}, nullptr);
  EXPECT_FALSE(store.place("w", *other, {2, 1}).ok());
}

class BackendStateTable : public BackendKit {};

// As stores use it that keep blocks of a device's memory.
TEST_F(BackendStateTable, WhatCannotBeMadeIsNotKeptAndWhatIsMadeStaysWhereItIs) {
  backend::StateTable<std::shared_ptr<int>> states;
  auto fail = []() -> Result<std::shared_ptr<int>> { return Status(TN_INTERNAL, "no memory"); };
  auto make = []() -> Result<std::shared_ptr<int>> { return std::make_shared<int>(5); };
  EXPECT_FALSE(states.get("w", fail).ok());
  EXPECT_EQ(states.find("w"), nullptr);

  std::shared_ptr<int>* first = *states.get("w", make);
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(states.get(cat("other ", i), make).ok());

  EXPECT_EQ(*states.get("w", fail), first);
  EXPECT_EQ(states.find("w"), first);
  EXPECT_EQ(**first, 5);
}

class BackendWeights : public BackendKit {};

TEST_F(BackendWeights, AreMadeOnceWhileSomebodyHoldsThem) {
  backend::WeightCache<std::string, int> cache;
  std::vector<float> weights = {1, 2, 3};
  int n_made = 0;
  auto get = [&](const std::string& form) {
    return cache.get({weights.data(), 12}, form, [&] { return std::make_shared<int>(++n_made); });
  };
  std::shared_ptr<int> first = get("packed");
  EXPECT_EQ(get("packed"), first);
  EXPECT_NE(get("transposed"), first);
  weights[1] = 7;  // another model at the same address
  EXPECT_NE(get("packed"), first);
  weights[1] = 2;
  EXPECT_EQ(get("packed"), first);
  first.reset();
  EXPECT_EQ(*get("packed"), n_made);
  EXPECT_EQ(n_made, 4);
}

TEST_F(BackendWeights, AFailureIsHandedUpAndNotKept) {
  backend::WeightCache<int, int> cache;
  auto fail = []() -> Result<std::shared_ptr<int>> { return Status(TN_INTERNAL, "no"); };
  auto make = []() -> Result<std::shared_ptr<int>> { return std::make_shared<int>(5); };
  EXPECT_FALSE(cache.get({"x", 1}, 0, fail).ok());
  EXPECT_EQ(**cache.get({"x", 1}, 0, make), 5);
}

TEST_F(BackendWeights, OfATensorAreKnownByItsIdentityAndNotRead) {
  backend::WeightCache<int, int> cache;
  const std::vector<int64_t> dims = {2};
  Tensor one = *Tensor::zeros(ctx_, TN_F32, dims), other = *Tensor::zeros(ctx_, TN_F32, dims);
  EXPECT_NE(one.identity(), other.identity());
  EXPECT_EQ(one.identity(), Tensor(one).identity());
  const void* nowhere = nullptr;
  auto get = [&](const Tensor& of) {
    return cache.get({nowhere, 8, of.identity()}, 0, [] { return std::make_shared<int>(); });
  };
  std::shared_ptr<int> first = get(one);
  EXPECT_EQ(get(one), first);
  EXPECT_NE(get(other), first);
}

}  // namespace
}  // namespace tenon::test
