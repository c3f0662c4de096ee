// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cases of tests/golden/gradients.json, written by gradients.py: a graph, a formula for each
// input, and what PyTorch computes of its gradients in fp64.
#include <cstdio>
#include <set>

#include "plugins/autodiff/autodiff_test.hpp"

namespace tenon::test {

class GoldenTest : public AutodiffTest {
 protected:
  // Whole models take seconds and more, so they are tests of their own.
  static bool is_model(const json& one) {
    static const std::set<std::string> kModels = {"resnet18", "minilm", "gpt2_small"};
    return kModels.count(one["name"]) != 0;
  }
  static json cases() {
    json all = golden("gradients.json");
    return all.is_discarded() ? json::array() : all["cases"];
  }
  static json case_named(std::string_view name) {
    for (const json& one : cases())
      if (one["name"] == name) return one;
    ADD_FAILURE() << "tests/golden/gradients.json has no case " << name;
    return {};
  }

  // Of the loss and of each gradient, in the order of one["gradients"]. Expects them to agree with
  // PyTorch's; empty where they could not be computed.
  std::vector<Numbers> agreeing_in_fp64(const json& one) {
    SCOPED_TRACE(one["name"]);
    OwnedGraph g = with_gradients(one, one["text"]);
    std::vector<Numbers> out = results(g, inputs_of(one));
    const json& stored = one["gradients"];
    EXPECT_EQ(out.size(), stored.size() + 1);
    if (out.size() != stored.size() + 1) return {};
    double largest = 0, loss = one["loss"], worst = std::fabs(out[0][0] - loss) / std::fabs(loss);
    for (const json& gradient : stored)
      largest = std::max(largest, gradient["norm"].get<double>());
    // A gradient that is nothing but rounding (a bias before a norm) is measured by the largest.
    for (size_t i = 0; i < stored.size(); ++i) {
      double away = distance(out[i + 1], stored[i], 1e-9 * largest);
      EXPECT_LT(away, 1e-5) << "gradient by " << stored[i]["name"];
      worst = std::max(worst, away);
    }
    EXPECT_LT(worst, 1e-5);
    std::printf("%-32s %3zu gradients, furthest from PyTorch by %.1e\n",
                one["name"].get<std::string>().c_str(), stored.size(), worst);
    return out;
  }

  // Expects onednn's fp32 to be about as near to fp64 as PyTorch's, over all gradients together.
  void near_in_fp32(const json& one, const std::vector<Numbers>& wide) {
    SCOPED_TRACE(one["name"]);
    std::string text = one["text"];
    for (size_t at = 0; (at = text.find("f64[", at)) != std::string::npos;)
      text.replace(at, 4, "f32[");
    OwnedGraph g = with_gradients(one, text);
    tn_plan* plan = nullptr;
    const char* options = R"({"backend": "onednn", "threads": 2})";
    ASSERT_EQ(text_of(Status(tenon_compile(session_, g.get(), str(options), &plan))), "");
    std::vector<Numbers> narrow;
    StringSink described;
    EXPECT_EQ(text_of(Status(services.eval->describe(plan, described.get()))), "");
    EXPECT_EQ(text_of(run_plan(plan, g.get(), inputs_of(one), narrow)), "");
    services.eval->release(plan);
    ASSERT_EQ(narrow.size(), wide.size());
    double away = distance(narrow, wide), peer = one["fp32"];
    EXPECT_LE(away, 2 * peer);
    size_t left = json::parse(described.text)["fallback_nodes"].size();
    std::printf("%-32s fp32 away by %.2e, PyTorch by %.2e (%zu nodes on the reference)\n",
                one["name"].get<std::string>().c_str(), away, peer, left);
  }

 private:
  // scale * u + shift in fp32, u of splitmix64 in [-1, 1), as gradients.py has it.
  static Numbers formula(int64_t n, uint64_t seed, double scale = 1, double shift = 0) {
    Numbers out;
    out.reserve(static_cast<size_t>(n));
    for (uint64_t i = 1; i <= static_cast<uint64_t>(n); ++i) {
      uint64_t z = (i + (seed << 40)) * 0x9E3779B97F4A7C15;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
      z ^= z >> 31;
      double uniform = static_cast<double>(z >> 11) * 0x1p-52 - 1;
      out.push_back(double{static_cast<float>(scale * uniform + shift)});
    }
    return out;
  }
  std::vector<Numbers> inputs_of(const json& one) {
    OwnedGraph graph = parse(one["text"]);
    std::vector<Numbers> out;
    std::vector<Value> values = graph.view().inputs();
    for (size_t i = 0; i < values.size(); ++i) {
      const json& how = one["inputs"].at(i);
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
  OwnedGraph with_gradients(const json& one, const std::string& text) {
    json wrt = json::array();
    for (const json& stored : one["gradients"])
      wrt.push_back(stored["name"]);
    return applied(parse(text), "autodiff.value_and_grad", {{"wrt", wrt}});
  }
  // How far a gradient is from what is stored of PyTorch's, relative to its norm.
  static double distance(const Numbers& gradient, const json& stored, double floor) {
    double square = 0, worst = 0, norm = stored["norm"];
    for (double g : gradient)
      square += g * g;
    double scale = std::max(norm, floor);
    worst = std::fabs(std::sqrt(square) - norm) / scale;
    for (uint64_t k = 0; k < 2; ++k) {
      Numbers vector = formula(static_cast<int64_t>(gradient.size()), 101 + k);
      double product = 0;
      for (size_t i = 0; i < gradient.size(); ++i)
        product += gradient[i] * vector[i];
      product /= std::sqrt(static_cast<double>(gradient.size()));
      worst = std::max(worst, std::fabs(product - stored["products"][k].get<double>()) / scale);
    }
    return worst;
  }
  // Of all gradients together, relative to the norm of the second; the loss comes first in both.
  static double distance(const std::vector<Numbers>& near, const std::vector<Numbers>& far) {
    double away = 0, norm = 0;
    for (size_t i = 1; i < far.size(); ++i)
      for (size_t k = 0; k < far[i].size(); ++k) {
        double gap = near[i].at(k) - far[i][k];
        away += gap * gap;
        norm += far[i][k] * far[i][k];
      }
    return std::sqrt(away / norm);
  }
};

}  // namespace tenon::test
