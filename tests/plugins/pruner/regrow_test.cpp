// SPDX-License-Identifier: Apache-2.0
// Weights that move (RigL), against a gradient in plain loops.
#include <set>

#include "plugins/datasets/zip_writer.hpp"
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

constexpr size_t kSamples = 12, kIn = 4, kOut = 3, kWeights = kIn * kOut;

// x [batch, 4] -> fc -> y [batch, 3]; the loss is the mean squared error.
class Regrow : public PruningTest {
 protected:
  void SetUp() override {
    PruningTest::SetUp();
    if (!make("tenon.pass/1", "autodiff.grad", {{"wrt", {"x"}}}).ok())
      GTEST_SKIP() << "the plugin autodiff is not there";
    build([&](EditView edit) {
      Value y = node(edit, "MatMul",
                     {input(edit, "x", {-1, kIn}), weight(edit, "w", {kIn, kOut}, 1)}, "fc");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
    x_ = random(kSamples * kIn, 3);
    t_ = random(kSamples * kOut, 4);
    ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.5}, {"apply", "nodes"}}), "");
    std::swap(model_, result_);
  }
  std::string data_set() {
    auto file = [&](std::string_view name, const std::vector<int64_t>& shape, const Floats& all) {
      std::ifstream in(data_of_numbers(name, shape, all), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    return write("set.npz", zip({{"x.npy", file("x", {kSamples, kIn}, x_)},
                                 {"t.npy", file("t", {kSamples, kOut}, t_)}}));
  }
  json options() { return {{"loss", "mse"}, {"label", "t"}, {"batch", 6}, {"data", data_set()}}; }
  static Floats weights(const OwnedGraph& graph) {
    Tensor t = graph.view().find("w").constant();
    return {t.data<float>(), t.data<float>() + kWeights};
  }
  static std::set<size_t> kept(const OwnedGraph& graph) {
    Tensor t = graph.view().find("w_mask").constant();
    std::set<size_t> out;
    for (size_t i = 0; i < kWeights; ++i)
      if (t.data<uint8_t>()[i]) out.insert(i);
    return out;
  }
  // The size of the loss's gradient by each weight, those that are not there among them.
  std::vector<double> growth(const Floats& w) const {
    std::vector<double> out(kWeights);
    for (size_t s = 0; s < kSamples; ++s)
      for (size_t o = 0; o < kOut; ++o) {
        double y = 0;
        for (size_t i = 0; i < kIn; ++i)
          y += double{x_[s * kIn + i]} * w[i * kOut + o];
        for (size_t i = 0; i < kIn; ++i)
          out[i * kOut + o] += (y - double{t_[s * kOut + o]}) * double{x_[s * kIn + i]};
      }
    for (double& one : out)
      one = std::abs(one);
    return out;
  }
  Floats x_, t_;
};

TEST_F(Regrow, TheSmallestGoAndTheLossSaysWhatComesBack) {
  Floats before = weights(model_);
  const std::set<size_t> old = kept(model_);
  ASSERT_EQ(old.size(), 6u);
  for (size_t i = 0; i < kWeights; ++i)
    if (!old.contains(i)) before[i] = 0;

  json asked = options();
  asked["share"] = 0.5;
  ASSERT_EQ(apply("pruner.regrow", asked), "");

  std::vector<size_t> by_size(old.begin(), old.end());
  std::sort(by_size.begin(), by_size.end(),
            [&](size_t a, size_t b) { return std::abs(before[a]) > std::abs(before[b]); });
  std::set<size_t> wanted(by_size.begin(), by_size.begin() + 3);
  std::vector<double> grows = growth(before);
  std::vector<size_t> free;
  for (size_t i = 0; i < kWeights; ++i)
    if (!wanted.contains(i)) free.push_back(i);
  std::sort(free.begin(), free.end(), [&](size_t a, size_t b) { return grows[a] > grows[b]; });
  wanted.insert(free.begin(), free.begin() + 3);
  EXPECT_EQ(kept(result_), wanted);
  Floats after = weights(result_);
  for (size_t i = 0; i < kWeights; ++i)
    EXPECT_EQ(after[i], wanted.contains(i) ? before[i] : 0) << i;
  EXPECT_EQ(report_["weights"][0]["moved"], 3);
  EXPECT_EQ(report_["weights"][0]["kept"], 6);
}

// What has just come is zero and counts as kept all the same.
TEST_F(Regrow, WhatHasComeStaysThroughTheNextPass) {
  json asked = options();
  asked["share"] = 0.5;
  ASSERT_EQ(apply("pruner.regrow", asked), "");
  const std::set<size_t> grown = kept(result_);
  std::swap(model_, result_);

  asked["share"] = 0;
  ASSERT_EQ(apply("pruner.regrow", asked), "");

  EXPECT_EQ(kept(result_), grown);
}

TEST_F(Regrow, TheShareFallsAsACosine) {
  json asked = options();
  asked.update({{"share", 0.4}, {"steps", 4}});
  for (auto [step, share] :
       {std::pair{0, 0.4}, {1, 0.2 * (1 + std::sqrt(0.5))}, {2, 0.2}, {4, 0.0}}) {
    asked["step"] = step;
    ASSERT_EQ(apply("pruner.regrow", asked), "");
    EXPECT_NEAR(report_["share"].get<double>(), share, 1e-12) << step;
  }
  asked["step"] = 5;
  EXPECT_THAT(apply("pruner.regrow", asked),
              testing::HasSubstr("option step: expected at most steps (4), got 5"));
}

TEST_F(Regrow, RandomPlacesNeedNoDataAndComeFromTheSeed) {
  json asked{{"by", "random"}, {"share", 0.5}, {"seed", 3}};
  ASSERT_EQ(apply("pruner.regrow", asked), "");
  const std::set<size_t> first = kept(result_);
  EXPECT_EQ(first.size(), 6u);
  ASSERT_EQ(apply("pruner.regrow", asked), "");
  EXPECT_EQ(kept(result_), first);
  EXPECT_THAT(apply("pruner.regrow", json::object()),
              testing::HasSubstr("option data: expected a data set with labels"));
}

// x [batch, 4] -> fc1 -> fc2 -> y [batch, 3]
class RegrowSome : public PruningTest {
 protected:
  void build_two(Floats second) {
    build([&](EditView edit) {
      Value h = node(edit, "MatMul",
                     {input(edit, "x", {-1, kIn}), weight(edit, "w1", {kIn, kIn}, 1)}, "fc1");
      auto w2 = edit.constant<float>(TN_F32, {kIn, kOut}, second, "w2");
      ASSERT_EQ(text_of(edit.output("y", node(edit, "MatMul", {h, *w2}, "fc2"))), "");
    });
  }
  Floats mask(const char* name) {
    Value value = result_.view().find(name);
    if (!value) return {};
    Tensor t = value.constant();
    const auto* data = t.data<uint8_t>();
    return {data, data + element_count(t.dl())};
  }
};

TEST_F(RegrowSome, WhatIsSkippedKeepsItsMask) {
  build_two(random(kWeights, 2));
  ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.5}, {"apply", "nodes"}}), "");
  const Floats before = mask("w2_mask");
  ASSERT_EQ(std::count(before.begin(), before.end(), 0), 6);
  std::swap(model_, result_);

  ASSERT_EQ(apply("pruner.regrow", {{"by", "random"}, {"share", 0.5}, {"skip", {"fc2"}}}), "");

  EXPECT_EQ(mask("w2_mask"), before);
  Value w2 = result_.view().find("w2");
  EXPECT_EQ(w2.consumer_count(), 1u);
  EXPECT_TRUE(w2.consumer(0).is("Mul"));
  EXPECT_EQ(report_["weights"].size(), 1u);
}

TEST_F(RegrowSome, BesideMasksAZeroByChanceIsAWeight) {
  Floats second = random(kWeights, 2);
  second[5] = 0;
  build_two(second);
  ASSERT_EQ(apply("pruner.unstructured", {{"apply", "nodes"}, {"skip", {"fc2"}}}), "");
  std::swap(model_, result_);

  ASSERT_EQ(apply("pruner.regrow", {{"by", "random"}, {"share", 0.5}}), "");

  ASSERT_EQ(report_["weights"].size(), 1u);
  EXPECT_EQ(report_["weights"][0]["node"], "fc1");
  EXPECT_FALSE(result_.view().find("w2_mask"));
}

class RegrowWhole : public PruningTest {};

TEST_F(RegrowWhole, AModelWithoutZerosHasNothingToMove) {
  build([&](EditView edit) {
    Value y = node(edit, "MatMul", {input(edit, "x", {-1, kIn}), weight(edit, "w", {kIn, kOut}, 1)},
                   "fc");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  EXPECT_THAT(apply("pruner.regrow", {{"by", "random"}}),
              testing::HasSubstr("no weight has zeros to move"));
}

}  // namespace
}  // namespace tenon::test
