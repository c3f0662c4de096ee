// SPDX-License-Identifier: Apache-2.0
// Scores by gradients, which the plugin autodiff gives.
#include "plugins/datasets/zip_writer.hpp"
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

constexpr size_t kSamples = 12, kIn = 3, kUnits = 6;

// x [batch, 3] -> fc1 (6 units) -> fc2 -> y [batch, 1], without biases and activations
class Taylor : public PruningTest {
 protected:
  void SetUp() override {
    PruningTest::SetUp();
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, kIn});
      Value h = node(edit, "MatMul", {x, weight(edit, "w1", {kIn, kUnits}, 1)}, "fc1");
      Value y = node(edit, "MatMul", {h, weight(edit, "w2", {kUnits, 1}, 2)}, "fc2");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
    x_ = random(kSamples * kIn, 3);
    t_ = random(kSamples, 4);
  }
  Floats numbers(const char* name) {
    Tensor t = model_.view().find(name).constant();
    return {t.data<float>(), t.data<float>() + element_count(t.dl())};
  }
  // The gradient of the squared error by a gate on each unit, for samples [first, last).
  std::vector<double> gates(size_t first, size_t last) {
    Floats w1 = numbers("w1"), w2 = numbers("w2");
    std::vector<double> out(kUnits);
    for (size_t s = first; s < last; ++s) {
      std::vector<double> part(kUnits);
      double y = 0;
      for (size_t u = 0; u < kUnits; ++u) {
        for (size_t i = 0; i < kIn; ++i)
          part[u] += double{x_[s * kIn + i]} * w1[i * kUnits + u];
        part[u] *= w2[u];
        y += part[u];
      }
      for (size_t u = 0; u < kUnits; ++u)
        out[u] += 2 * (y - t_[s]) * part[u] / static_cast<double>(last - first);
    }
    return out;
  }
  std::string data_set() {
    auto file = [&](std::string_view name, const std::vector<int64_t>& shape, const Floats& all) {
      std::ifstream in(data_of_numbers(name, shape, all), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    return write("set.npz", zip({{"x.npy", file("x", {kSamples, kIn}, x_)},
                                 {"t.npy", file("t", {kSamples, 1}, t_)}}));
  }
  Floats x_, t_;
};

TEST_F(Taylor, LabelsMustBeInTheData) {
  EXPECT_THAT(
      apply("pruner.structured",
            {{"importance", "taylor"}, {"loss", "mse"}, {"label", "z"}, {"data", data_set()}}),
      testing::HasSubstr("option label: expected a field z, the data set has x, t"));
}

TEST_F(Taylor, TheUnitsThatTheLossMissesLeastGo) {
  if (!make("tenon.pass/1", "autodiff.grad", {{"wrt", {"x"}}}).ok())
    GTEST_SKIP() << "the plugin autodiff is not there";

  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.5},
                                        {"importance", "taylor"},
                                        {"loss", "mse"},
                                        {"label", "t"},
                                        {"batch", 4},
                                        {"data", data_set()}}),
            "");

  std::vector<double> scores(kUnits);
  for (size_t first = 0; first < kSamples; first += 4) {
    std::vector<double> gate = gates(first, first + 4);
    for (size_t u = 0; u < kUnits; ++u)
      scores[u] += gate[u] * gate[u];
  }
  std::vector<size_t> order{0, 1, 2, 3, 4, 5};
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  order.resize(3);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(group("fc1")["removed"], json(order));
}

}  // namespace
}  // namespace tenon::test
