// SPDX-License-Identifier: Apache-2.0
#pragma once
// What float16 would make of the gradients of an epoch, from the counts that
// precision.gradient_histogram gives for each step.

#include <algorithm>
#include <array>
#include <cmath>

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
  // Shares of the numbers that are not 0; loss_scale: the power of 2 that leaves the largest two
  // bits of room below 65504.
  void add_to(nlohmann::json& record) const {
    double all = std::max(counts[0], 1.0);
    record["gradients_flushed"] = (counts[0] - counts[1]) / all;
    record["gradients_subnormal"] = (counts[1] - counts[2]) / all;
    record["gradients_overflow"] = counts[3] / all;
    record["largest_gradient"] = counts[4];
    if (counts[4] > 0 && std::isfinite(counts[4]))
      record["advised_loss_scale"] = std::exp2(std::floor(std::log2(65504 / (4 * counts[4]))));
  }
};

}  // namespace tenon::trainer
