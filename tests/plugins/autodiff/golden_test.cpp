// SPDX-License-Identifier: Apache-2.0
// Gradients against PyTorch's in fp64: tests/golden/gradients.json, written by gradients.py.
#include <fstream>

#include "plugins/autodiff/autodiff_test.hpp"

namespace tenon::test {
namespace {

// scale * sin(...) + shift, as gradients.py has it.
Numbers formula(int64_t n, double seed, double scale = 1, double shift = 0) {
  Numbers out;
  for (int64_t i = 0; i < n; ++i) {
    double phase = 1.0 + 0.7 * seed + static_cast<double>(i) * (0.61803398875 + 0.013 * seed);
    out.push_back(scale * std::sin(phase) + shift);
  }
  return out;
}

class Golden : public AutodiffTest {
 protected:
  static json cases() {
    std::ifstream file(TENON_TEST_GOLDEN_DIR "/gradients.json");
    json all = json::parse(file, nullptr, false);
    EXPECT_FALSE(all.is_discarded()) << "tests/golden/gradients.json cannot be read";
    return all.is_discarded() ? json::array() : all["cases"];
  }
  static std::vector<Numbers> inputs_of(const OwnedGraph& graph, const json& inputs) {
    std::vector<Numbers> out;
    std::vector<Value> values = graph.view().inputs();
    for (size_t i = 0; i < values.size(); ++i) {
      const json& how = inputs.at(i);
      int64_t n = values[i].type().elements();
      if (!how.contains("classes")) {
        out.push_back(formula(n, how["seed"], how["scale"], how["shift"]));
        continue;
      }
      Numbers labels;
      for (int64_t k = 0; k < n; ++k)
        labels.push_back(static_cast<double>(k * 7 % how["classes"].get<int64_t>()));
      out.push_back(labels);
    }
    return out;
  }
  // How far a gradient is from what is stored of PyTorch's, relative to its norm.
  static double distance(const Numbers& gradient, const json& stored, double floor) {
    auto n = static_cast<int64_t>(gradient.size());
    double square = 0, worst = 0, norm = stored["norm"];
    for (double g : gradient)
      square += g * g;
    double scale = std::max(norm, floor);
    worst = std::fabs(std::sqrt(square) - norm) / scale;
    for (int k = 0; k < 2; ++k) {
      Numbers vector = formula(n, 101 + k);
      double product = 0;
      for (size_t i = 0; i < gradient.size(); ++i)
        product += gradient[i] * vector[i];
      product /= std::sqrt(static_cast<double>(n));
      worst = std::max(worst, std::fabs(product - stored["products"][k].get<double>()) / scale);
    }
    return worst;
  }
  void check(const json& one) {
    SCOPED_TRACE(one["name"]);
    OwnedGraph f = parse(one["text"]);
    ASSERT_TRUE(f.get());
    json wrt = json::array();
    double largest = 0;
    for (const json& stored : one["gradients"]) {
      wrt.push_back(stored["name"]);
      largest = std::max(largest, stored["norm"].get<double>());
    }
    OwnedGraph g = applied(f, "autodiff.value_and_grad", {{"wrt", wrt}});
    ASSERT_TRUE(g.get());
    std::vector<Numbers> out = results(g, inputs_of(f, one["inputs"]));
    ASSERT_EQ(out.size(), wrt.size() + 1);
    double loss = one["loss"], worst = std::fabs(out[0][0] - loss) / std::fabs(loss);
    // A gradient that is nothing but rounding (a bias before a norm) is measured by the largest.
    for (size_t i = 0; i < wrt.size(); ++i) {
      double away = distance(out[i + 1], one["gradients"][i], 1e-9 * largest);
      EXPECT_LT(away, 1e-5) << "gradient by " << wrt[i];
      worst = std::max(worst, away);
    }
    EXPECT_LT(worst, 1e-5);
    std::printf("%-32s %3zu gradients, furthest from PyTorch by %.1e\n",
                one["name"].get<std::string>().c_str(), wrt.size(), worst);
  }
};

TEST_F(Golden, SmallCasesAgreeWithPyTorch) {
  int checked = 0;
  for (const json& one : cases()) {
    if (one["name"] == "resnet18") continue;
    check(one);
    ++checked;
  }
  EXPECT_GE(checked, 28);
}

TEST_F(Golden, ResNet18AgreesWithPyTorch) {
  for (const json& one : cases())
    if (one["name"] == "resnet18") check(one);
}

}  // namespace
}  // namespace tenon::test
