// SPDX-License-Identifier: Apache-2.0
#include "scale.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tenon/sdk/decibels.hpp"

#include "algorithms/round_trip.hpp"

namespace tenon::quantizer {
namespace {

Grid grid_of(float scale, const WeightPlan& plan) {
  const auto largest = static_cast<double>(plan.largest);
  return {.scale = scale, .low = -largest, .high = largest};
}

template <class Visit>
void each_number(const AxisSplit& at, Visit&& visit) {
  for (int64_t o = 0, k = 0; o < at.outer; ++o)
    for (int64_t c = 0; c < at.size; ++c)
      for (int64_t i = 0; i < at.inner; ++i, ++k)
        visit(static_cast<size_t>(c), static_cast<size_t>(k));
}

// Of scales from that of the largest number down to 0.3 of it the one of least squared error, for
// each channel or for all together.
std::vector<float> clipped(const float* data,
                           const AxisSplit& at,
                           const WeightPlan& plan,
                           const std::vector<float>& widest) {
  std::vector<float> best = widest;
  std::vector<double> least(widest.size(), std::numeric_limits<double>::infinity());
  for (int percent = 100; percent >= 30; percent -= 5) {
    const float share = static_cast<float>(percent) / 100;
    std::vector<double> errors(widest.size(), 0);
    each_number(at, [&](size_t c, size_t k) {
      const Grid grid = grid_of(share * widest[c], plan);
      const double error = data[k] - grid.quantized(data[k]) * static_cast<double>(grid.scale);
      errors[plan.per_channel ? c : 0] += error * error;
    });
    for (size_t c = 0; c < best.size(); ++c) {
      const double error = errors[plan.per_channel ? c : 0];
      if (error >= least[c]) continue;
      least[c] = error;
      best[c] = share * widest[c];
    }
  }
  return best;
}

}  // namespace

bool all_finite(const DLTensor& tensor) {
  const float* data = data_of<float>(tensor);
  int64_t n_others = 0;  // counted without a way out, so that it runs on vectors
  for (int64_t i = 0, n = element_count(tensor); i < n; ++i)
    n_others += !(std::abs(data[i]) <= std::numeric_limits<float>::max());
  return n_others == 0;
}

Params params_for(const tn_range& range, bool is_signed) {
  const double most = std::max({-range.low, range.high, 0.0});
  const Grid grid = is_signed ? symmetric_grid(most, 127) : range_grid(range.low, range.high);
  return {grid.scale, static_cast<int32_t>(grid.zero)};
}

Weight quantize_weight(const DLTensor& tensor, const WeightPlan& plan) {
  const float* data = data_of<float>(tensor);
  const AxisSplit at(shape_of(tensor), plan.axis);
  std::vector<double> most(static_cast<size_t>(at.size), 0);
  each_number(at, [&](size_t c, size_t k) {
    most[c] = std::max(most[c], std::abs(static_cast<double>(data[k])));
  });
  if (!plan.per_channel) most.assign(most.size(), *std::max_element(most.begin(), most.end()));

  Weight out;
  out.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  out.axis = plan.axis;
  for (double one : most)
    out.scale.push_back(symmetric_grid(one, plan.largest).scale);
  if (plan.clips) out.scale = clipped(data, at, plan, out.scale);
  for (size_t c = 0; c < plan.at_least.size(); ++c)
    out.scale[c] = std::max(out.scale[c], plan.at_least[c]);
  if (!plan.per_channel)
    out.scale.assign(out.scale.size(), *std::max_element(out.scale.begin(), out.scale.end()));
  out.numbers.resize(static_cast<size_t>(element_count(tensor)));
  double signal = 0, noise = 0;
  each_number(at, [&](size_t c, size_t k) {
    const double q = grid_of(out.scale[c], plan).quantized(data[k]);
    out.numbers[k] = static_cast<int8_t>(q);
    double x = data[k], error = x - q * static_cast<double>(out.scale[c]);
    signal += x * x;
    noise += error * error;
  });
  out.snr_db = decibels(signal, noise);
  if (!plan.per_channel) out.scale.resize(1);
  return out;
}

std::vector<float> dequantized(const Weight& weight) {
  const AxisSplit at(weight.shape, weight.axis);
  std::vector<float> out;
  for (size_t k = 0; k < weight.numbers.size(); ++k) {
    float scale = weight.scale[weight.scale.size() == 1 ? 0 : at.along(k)];
    out.push_back(scale * static_cast<float>(weight.numbers[k]));
  }
  return out;
}

}  // namespace tenon::quantizer
