// SPDX-License-Identifier: Apache-2.0
// Scores by second derivatives, against differences of gradients that plain loops compute.
#include "plugins/datasets/zip_writer.hpp"
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

constexpr size_t kSamples = 12, kBatch = 6, kIn = 3, kUnits = 4;
constexpr double kStep = 1e-4;

using Numbers = std::vector<double>;

// x [batch, 3] -> fc1 (4 units) -> fc2 -> y [batch, 1]; the loss is the mean squared error.
class Curvature : public PruningTest {
 protected:
  void SetUp() override {
    PruningTest::SetUp();
    if (!make("tenon.pass/1", "autodiff.grad", {{"wrt", {"x"}}}).ok())
      GTEST_SKIP() << "the plugin autodiff is not there";
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, kIn});
      Value h = node(edit, "MatMul", {x, weight(edit, "w1", {kIn, kUnits}, 1)}, "fc1");
      Value y = node(edit, "MatMul", {h, weight(edit, "w2", {kUnits, 1}, 2)}, "fc2");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
    x_ = random(kSamples * kIn, 3);
    t_ = random(kSamples, 4);
    for (const char* name : {"w1", "w2"}) {
      Tensor t = model_.view().find(name).constant();
      weights_.insert(weights_.end(), t.data<float>(), t.data<float>() + element_count(t.dl()));
    }
  }
  std::string data_set() {
    auto file = [&](std::string_view name, const std::vector<int64_t>& shape, const Floats& all) {
      std::ifstream in(data_of_numbers(name, shape, all), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    return write("set.npz", zip({{"x.npy", file("x", {kSamples, kIn}, x_)},
                                 {"t.npy", file("t", {kSamples, 1}, t_)}}));
  }
  // By w1, then w2, for samples [first, last).
  Numbers gradient(const Numbers& w, size_t first, size_t last) const {
    Numbers out(w.size());
    const size_t second = kIn * kUnits;
    for (size_t s = first; s < last; ++s) {
      Numbers h(kUnits);
      double y = 0;
      for (size_t u = 0; u < kUnits; ++u) {
        for (size_t i = 0; i < kIn; ++i)
          h[u] += double{x_[s * kIn + i]} * w[i * kUnits + u];
        y += h[u] * w[second + u];
      }
      const double error = 2 * (y - double{t_[s]}) / static_cast<double>(last - first);
      for (size_t u = 0; u < kUnits; ++u) {
        out[second + u] += error * h[u];
        for (size_t i = 0; i < kIn; ++i)
          out[i * kUnits + u] += error * w[second + u] * double{x_[s * kIn + i]};
      }
    }
    return out;
  }
  // The Hessian times a direction.
  Numbers curved(const Numbers& along, size_t first, size_t last) const {
    Numbers up = weights_, down = weights_;
    for (size_t i = 0; i < up.size(); ++i)
      up[i] += kStep * along[i], down[i] -= kStep * along[i];
    Numbers out = gradient(up, first, last), low = gradient(down, first, last);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = (out[i] - low[i]) / (2 * kStep);
    return out;
  }
  // Per unit, of weights by w1 and w2.
  static Numbers of_units(const Numbers& each, bool of_makers) {
    Numbers out(kUnits);
    for (size_t u = 0; u < kUnits; ++u) {
      out[u] = each[kIn * kUnits + u];
      for (size_t i = 0; of_makers && i < kIn; ++i)
        out[u] += each[i * kUnits + u];
    }
    return out;
  }
  // What the pass reports of each unit.
  Numbers scores_of(const char* importance) {
    EXPECT_EQ(apply("pruner.structured", {{"ratio", 0.5},
                                          {"importance", importance},
                                          {"loss", "mse"},
                                          {"label", "t"},
                                          {"batch", kBatch},
                                          {"scores", true},
                                          {"data", data_set()}}),
              "");
    return group("fc1")["scores"].get<Numbers>();
  }
  void expect_scores(const char* importance, const Numbers& wanted) {
    const Numbers found = scores_of(importance);
    ASSERT_EQ(found.size(), kUnits);
    for (size_t u = 0; u < kUnits; ++u)
      EXPECT_NEAR(found[u], wanted[u], 1e-4 * std::abs(wanted[u]) + 1e-6) << u;
  }
  Floats x_, t_;
  Numbers weights_;
};

TEST_F(Curvature, SecondOrderTaylorTakesHalfOfTheHessianOff) {
  Numbers wanted(kUnits), first_order(kUnits);
  for (size_t first = 0; first < kSamples; first += kBatch) {
    Numbers g = gradient(weights_, first, first + kBatch);
    Numbers h = curved(weights_, first, first + kBatch);
    for (size_t i = 0; i < g.size(); ++i)
      h[i] = weights_[i] * (g[i] - h[i] / 2), g[i] *= weights_[i];
    Numbers both = of_units(h, false), one = of_units(g, false);
    for (size_t u = 0; u < kUnits; ++u) {
      wanted[u] += both[u] * both[u] / 2;  // the mean of two batches
      first_order[u] += one[u] * one[u] / 2;
    }
  }

  expect_scores("taylor2", wanted);
  expect_scores("taylor", first_order);
  EXPECT_GT(std::abs(wanted[0] - first_order[0]), 1e-3);
}

TEST_F(Curvature, GraspIsWeightTimesHessianTimesTheMeanGradient) {
  Numbers mean = gradient(weights_, 0, kSamples), wanted(weights_.size());
  for (size_t first = 0; first < kSamples; first += kBatch) {
    Numbers h = curved(mean, first, first + kBatch);
    for (size_t i = 0; i < h.size(); ++i)
      wanted[i] += weights_[i] * h[i] / 2;
  }

  expect_scores("grasp", of_units(wanted, true));
}

// To first order the squared norm of the gradient falls by twice the score.
TEST_F(Curvature, GraspSaysWhatTheFlowOfGradientsLoses) {
  const Numbers scores = scores_of("grasp");
  ASSERT_EQ(scores.size(), kUnits);
  auto norm = [this](const Numbers& w) {
    double sum = 0;
    for (double x : gradient(w, 0, kSamples))
      sum += x * x;
    return sum;
  };
  const double part = 1e-4;
  for (size_t u = 0; u < kUnits; ++u) {
    Numbers less = weights_;
    less[kIn * kUnits + u] *= 1 - part;
    for (size_t i = 0; i < kIn; ++i)
      less[i * kUnits + u] *= 1 - part;
    EXPECT_NEAR((norm(weights_) - norm(less)) / part, 2 * scores[u], 1e-2 * std::abs(scores[u]))
        << u;
  }
}

TEST_F(Curvature, LayersThatTheFirstOutputDoesNotReadScoreNothing) {
  const Numbers second = scores_of("taylor2"), flow = scores_of("grasp");
  auto edit = Edit::begin(model_.get());
  ASSERT_TRUE(edit.ok());
  Value h = node(*edit, "MatMul",
                 {edit->graph().inputs()[0], weight(*edit, "w3", {kIn, kUnits}, 5)}, "fc3");
  Value z = node(*edit, "MatMul", {h, weight(*edit, "w4", {kUnits, 1}, 6)}, "fc4");
  ASSERT_EQ(text_of(edit->output("z", z)), "");
  ASSERT_EQ(text_of(edit->commit()), "");

  expect_scores("taylor2", second);
  EXPECT_EQ(group("fc3")["scores"], json(Numbers(kUnits)));
  expect_scores("grasp", flow);
  EXPECT_EQ(group("fc3")["scores"], json(Numbers(kUnits)));
}

TEST_F(Curvature, SingleWeightsGoByTheirOwnScores) {
  json options{{"importance", "grasp"}, {"loss", "mse"},   {"label", "t"},
               {"sparsity", 0.25},      {"batch", kBatch}, {"data", data_set()}};

  ASSERT_EQ(apply("pruner.unstructured", options), "");

  Numbers mean = gradient(weights_, 0, kSamples), h = curved(mean, 0, kSamples);
  std::vector<size_t> order(kIn * kUnits);
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return weights_[a] * h[a] < weights_[b] * h[b]; });
  Tensor w1 = result_.view().find("w1").constant();
  for (size_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(w1.data<float>()[order[i]] == 0, i < 3) << order[i];
}

TEST_F(Curvature, WantsLabels) {
  EXPECT_THAT(apply("pruner.structured", {{"importance", "taylor2"}}),
              testing::HasSubstr("option data: expected a data set with labels"));
}

}  // namespace
}  // namespace tenon::test
