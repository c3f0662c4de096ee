// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models with planted or random weights, decomposed and run.

#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {

class DecomposerTest : public PassTest {
 protected:
  // Tests of numbers do not depend on the clock: only those that say `measure` do.
  std::string apply(std::string_view id, json options) {
    if (!options.contains("measure")) options["measure"] = false;
    return PassTest::apply(id, options);
  }
  // A product of two random factors: [rows, cols] of this rank, norm about 1 a row.
  Floats planted(int64_t rows, int64_t cols, int64_t rank, uint64_t seed) {
    Floats a = random(static_cast<size_t>(rows * rank), seed);
    Floats b = random(static_cast<size_t>(rank * cols), seed + 1);
    Floats out(static_cast<size_t>(rows * cols));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        double sum = 0;
        for (int64_t r = 0; r < rank; ++r)
          sum += double{a[static_cast<size_t>(i * rank + r)]} *
                 double{b[static_cast<size_t>(r * cols + j)]};
        out[static_cast<size_t>(i * cols + j)] = static_cast<float>(0.1 * sum);
      }
    return out;
  }
  Value constant(EditView edit,
                 std::string_view name,
                 const std::vector<int64_t>& shape,
                 const Floats& numbers) {
    auto made = edit.constant<float>(TN_F32, shape, numbers, name);
    EXPECT_TRUE(made.ok());
    return *made;
  }
  // x [batch, n_in, size, size] -> Conv -> y; the bias is random.
  void build_conv(const std::vector<int64_t>& w_shape,
                  const Floats& w,
                  std::vector<int64_t> x_shape,
                  const std::vector<Attr>& attrs = {}) {
    build([&](EditView edit) {
      Value x = input(edit, "x", std::move(x_shape));
      Value y = node(edit, "Conv",
                     {x, constant(edit, "w", w_shape, w), weight(edit, "b", {w_shape[0]}, 77)},
                     "conv", attrs);
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
  }
  // Largest difference of the two models' outputs, relative to the largest output.
  double difference(const std::vector<int64_t>& shape, uint64_t seed = 99) {
    Floats batch = random(count(shape), seed);
    Floats a = run(model_, shape, batch), b = run(result_, shape, batch);
    if (a.size() != b.size() || a.empty()) return 1e9;
    double most = 0, largest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double off = std::abs(double{a[i]} - double{b[i]});
      if (std::isnan(off)) return 1e9;
      most = std::max(most, off);
      largest = std::max(largest, std::abs(double{a[i]}));
    }
    return most / largest;
  }
  json row(std::string_view list, std::string_view node) {
    for (const json& one : report_[list])
      if (one["node"] == node) return one;
    return {};
  }
  std::string why_left(std::string_view node) {
    json found = row("left", node);
    return found.is_null() ? "not in the list" : found.value("why", "");
  }
};

}  // namespace tenon::test
