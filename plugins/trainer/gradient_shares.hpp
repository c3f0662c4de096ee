// SPDX-License-Identifier: Apache-2.0
#pragma once
// What float16 would make of the gradients of an epoch, from the counts that
// precision.gradient_histogram gives for each step.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>

namespace tenon::trainer {

struct GradientShares {
  // Numbers that are not 0, above 2^-25, from 2^-14, from 65520; the largest of all.
  std::array<double, 5> counts{};

  void add(const std::array<double, 5>& step) {
    for (size_t i = 0; i < 4; ++i)
      counts[i] += step[i];
    counts[4] = std::max(counts[4], step[4]);
  }
  // What follows for float16, in words.
  std::string advice() const {
    double all = std::max(counts[0], 1.0), flushed = (counts[0] - counts[1]) / all;
    if (counts[0] == 0) return "all gradients are 0";
    char text[192];
    if (counts[3] > 0) {
      std::snprintf(text, sizeof text,
                    "float16 would make %.3g of the gradients infinite: clip_norm, or bf16, which "
                    "has float32's range",
                    counts[3] / all);
    } else if (flushed > kManyFlushed && advised_scale() < 1) {
      std::snprintf(text, sizeof text,
                    "float16 would make %.3g of the gradients 0, and the largest, %.3g, leaves no "
                    "room for a loss scale: bf16, which has float32's range",
                    flushed, counts[4]);
    } else if (flushed > kManyFlushed) {
      std::snprintf(text, sizeof text,
                    "float16 without a loss scale would make %.3g of the gradients 0: begin with "
                    "loss_scale = {init_scale = %.17g}",
                    flushed, advised_scale());
    } else {
      std::snprintf(text, sizeof text,
                    "float16 keeps the gradients (%.3g become 0) without a loss scale", flushed);
    }
    return text;
  }
  // The power of 2 that leaves the largest two bits of room below 65504.
  double advised_scale() const { return std::exp2(std::floor(std::log2(65504 / (4 * counts[4])))); }
  // Shares of the numbers that are not 0; loss_scale: the power of 2 that leaves room.
  void add_to(nlohmann::json& record) const {
    double all = std::max(counts[0], 1.0);
    record["gradients_flushed"] = (counts[0] - counts[1]) / all;
    record["gradients_subnormal"] = (counts[1] - counts[2]) / all;
    record["gradients_overflow"] = counts[3] / all;
    record["largest_gradient"] = counts[4];
    if (counts[4] > 0 && std::isfinite(counts[4])) record["advised_loss_scale"] = advised_scale();
  }

 private:
  static constexpr double kManyFlushed = 1e-3;
};

}  // namespace tenon::trainer
