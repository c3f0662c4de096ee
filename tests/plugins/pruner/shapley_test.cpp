// SPDX-License-Identifier: Apache-2.0
// Scores by sampled orders, against the game of all subsets written out by hand.
#include <bit>
#include <numeric>

#include "plugins/datasets/zip_writer.hpp"
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

constexpr size_t kSamples = 8, kIn = 3, kUnits = 5;

// x [batch, 3] -> fc1 (5 units, a bias) -> Relu -> fc2 -> y [batch, 1]
class Shapley : public PruningTest {
 protected:
  void SetUp() override {
    PruningTest::SetUp();
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, kIn});
      Value h =
          node(edit, "Gemm",
               {x, weight(edit, "w1", {kIn, kUnits}, 1), weight(edit, "b1", {kUnits}, 5)}, "fc1");
      Value y =
          node(edit, "MatMul", {relu(edit, h, "relu"), weight(edit, "w2", {kUnits, 1}, 2)}, "fc2");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
    x_ = random(kSamples * kIn, 3);
    t_ = random(kSamples, 4);
  }
  Floats numbers(const char* name) {
    Tensor t = model_.view().find(name).constant();
    return {t.data<float>(), t.data<float>() + element_count(t.dl())};
  }
  // The squared error of the units that are in the set, a bit each.
  double loss(uint32_t present) {
    Floats w1 = numbers("w1"), b1 = numbers("b1"), w2 = numbers("w2");
    double out = 0;
    for (size_t s = 0; s < kSamples; ++s) {
      double y = 0;
      for (size_t u = 0; u < kUnits; ++u) {
        if (!(present >> u & 1)) continue;
        double h = double{b1[u]};
        for (size_t i = 0; i < kIn; ++i)
          h += double{x_[s * kIn + i]} * w1[i * kUnits + u];
        y += std::max(h, 0.0) * w2[u];
      }
      out += (y - t_[s]) * (y - t_[s]) / kSamples;
    }
    return out;
  }
  // By its definition, over all sets without the unit: the mean rise of the loss over all orders,
  // and their spread.
  std::pair<double, double> shapley(size_t unit) {
    auto factorial = [](int n) { return std::tgamma(n + 1.0); };
    double mean = 0, squares = 0;
    for (uint32_t set = 0; set < 1u << kUnits; ++set) {
      if (set >> unit & 1) continue;
      int size = std::popcount(set), all = kUnits;
      double share = factorial(size) * factorial(all - size - 1) / factorial(all);
      double rise = loss(set) - loss(set | 1u << unit);
      mean += share * rise;
      squares += share * rise * rise;
    }
    return {mean, std::sqrt(squares - mean * mean)};
  }
  std::vector<double> scores(const json& more) {
    auto file = [&](std::string_view name, const std::vector<int64_t>& shape, const Floats& all) {
      std::ifstream in(data_of_numbers(name, shape, all), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    json options{{"importance", "shapley"}, {"loss", "mse"}, {"label", "t"}, {"scores", true}};
    options["data"] = write("set.npz", zip({{"x.npy", file("x", {kSamples, kIn}, x_)},
                                            {"t.npy", file("t", {kSamples, 1}, t_)}}));
    options.update(more);
    EXPECT_EQ(apply("pruner.structured", options), "");
    return group("fc1")["scores"];
  }
  Floats x_, t_;
};

TEST_F(Shapley, ManyOrdersComeNearTheDefinition) {
  constexpr int kOrders = 150;

  std::vector<double> found = scores({{"orders", kOrders}, {"batch", kSamples}});

  int depend_on_the_order = 0;
  for (size_t u = 0; u < kUnits; ++u) {
    auto [mean, spread] = shapley(u);
    EXPECT_NEAR(found[u], mean, 3.5 * spread / std::sqrt(kOrders) + 1e-6) << "unit " << u;
    depend_on_the_order += spread > 0.01;
  }
  EXPECT_GE(depend_on_the_order, 3);
}

TEST_F(Shapley, ScoresAddUpToWhatTheGroupIsWorth) {
  for (uint64_t seed : {1, 2}) {
    std::vector<double> found = scores({{"batch", 4}, {"order_seed", seed}});

    double sum = std::accumulate(found.begin(), found.end(), 0.0);
    EXPECT_NEAR(sum, loss(0) - loss((1u << kUnits) - 1), 1e-5);
    EXPECT_EQ(group("fc1")["standard_errors"].size(), kUnits);
  }
  EXPECT_NE(scores({{"order_seed", 1}}), scores({{"order_seed", 2}}));
}

TEST_F(Shapley, SingleWeightsAreRefused) {
  EXPECT_THAT(apply("pruner.unstructured", {{"importance", "shapley"}}),
              testing::HasSubstr("single weights are too many to take out one by one"));
}

}  // namespace
}  // namespace tenon::test
