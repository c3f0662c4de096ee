// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models with random weights, pruned and masked: both must give the same answers.

#include <algorithm>

#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {

class PruningTest : public PassTest {
 protected:
  static double largest_difference(const Floats& a, const Floats& b) {
    if (a.size() != b.size() || a.empty()) return INFINITY;
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double off = std::abs(double{a[i]} - b[i]);
      if (std::isnan(off)) return INFINITY;
      worst = std::max(worst, off);
    }
    return worst;
  }
  static double largest(const Floats& a) {
    double out = 0;
    for (float one : a)
      out = std::max(out, std::abs(double{one}));
    return out;
  }

  // Removes and masks by the same options: the same answers, from fewer parameters.
  void expect_pruned_equals_masked(const std::vector<int64_t>& shape, json options = {}) {
    for (double ratio : {0.3, 0.6}) {
      options["ratio"] = ratio;
      options["apply"] = "mask";
      ASSERT_EQ(apply("pruner.structured", options), "");
      EXPECT_EQ(report_["parameters"]["ratio"], 1.0);
      OwnedGraph masked = std::move(result_);
      options["apply"] = "remove";
      ASSERT_EQ(apply("pruner.structured", options), "");
      EXPECT_LT(report_["parameters"]["ratio"], 0.9) << "at " << ratio;
      Floats batch = random(count(shape), 77);
      Floats expected = run(masked, shape, batch), got = run(result_, shape, batch);
      EXPECT_LE(largest_difference(expected, got), 1e-5 * std::max(1.0, largest(expected)))
          << "at " << ratio;
      EXPECT_GT(largest(expected), 1e-3) << "the masked model answers nothing but zeros";
    }
  }
  std::vector<int64_t> shape_of_value(std::string_view name) {
    return result_.view().find(name).type().dims;
  }
  // The group whose first layer this is.
  json group(std::string_view layer) {
    for (const json& one : report_["groups"])
      if (one["layer"] == layer) return one;
    return "no group " + std::string(layer);
  }
  std::string barrier(std::string_view node) {
    for (const json& one : report_["barriers"])
      if (one["node"] == node) return one["why"];
    return "no barrier";
  }
  // "node.role" of each member.
  std::vector<std::string> members(std::string_view layer) {
    std::vector<std::string> out;
    const json found = group(layer);
    for (const json& one : found["members"])
      out.push_back(one["value"].get<std::string>() + " " + one["role"].get<std::string>());
    std::sort(out.begin(), out.end());
    return out;
  }

  // x times a matrix of random weights, and a bias.
  Value product(EditView edit, Value x, const std::string& name, int64_t n_in, int64_t n_out) {
    uint64_t seed = std::hash<std::string>{}(name);
    Value made =
        node(edit, "MatMul", {x, weight(edit, name + ".w", {n_in, n_out}, seed)}, name + ".matmul");
    return node(edit, "Add", {made, weight(edit, name + ".b", {n_out}, seed + 1)}, name);
  }
  Value conv(EditView edit,
             Value x,
             std::string_view name,
             std::vector<int64_t> shape,
             std::vector<Attr> attrs = {}) {
    std::string text(name);
    uint64_t seed = std::hash<std::string>{}(text);
    int64_t n_out = shape[0];
    return node(
        edit, "Conv",
        {x, weight(edit, text + ".w", shape, seed), weight(edit, text + ".b", {n_out}, seed + 1)},
        name, std::move(attrs));
  }
  Value relu(EditView edit, Value x, std::string_view name) {
    return node(edit, "Relu", {x}, name);
  }
  // Mean over the image, then a classifier of 5.
  void classify(EditView edit, Value x, int64_t channels) {
    Value mean = node(edit, "GlobalAveragePool", {x}, "mean");
    Value flat = node(edit, "Flatten", {mean}, "flat");
    Value y = node(edit, "Gemm",
                   {flat, weight(edit, "fc.w", {5, channels}, 901), weight(edit, "fc.b", {5}, 902)},
                   "fc", {{"transB", 1}});
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  }
};

}  // namespace tenon::test
