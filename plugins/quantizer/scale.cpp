// SPDX-License-Identifier: Apache-2.0
#include "scale.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::quantizer {
namespace {

float positive(double scale) {
  if (scale == 0) return 1;  // all zeros: any scale is right
  return std::max(static_cast<float>(scale), std::numeric_limits<float>::min());
}

struct Layout {  // element (o, c, i) lies at (o * channels + c) * inner + i
  int64_t outer = 1, channels = 1, inner = 1;
};

Layout layout_of(const DLTensor& tensor, int64_t axis) {
  Layout out;
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    int64_t& part = d < axis ? out.outer : d == axis ? out.channels : out.inner;
    part *= tensor.shape[d];
  }
  return out;
}

template <class Visit>
void each_number(const Layout& at, Visit&& visit) {
  for (int64_t o = 0, k = 0; o < at.outer; ++o)
    for (int64_t c = 0; c < at.channels; ++c)
      for (int64_t i = 0; i < at.inner; ++i, ++k)
        visit(static_cast<size_t>(c), static_cast<size_t>(k));
}

// Division in float and rounding half to even, as QuantizeLinear is defined.
double rounded(float x, float scale, double limit) {
  return std::clamp(static_cast<double>(std::nearbyint(x / scale)), -limit, limit);
}

// Of scales from that of the largest number down to 0.3 of it the one of least squared error, for
// each channel or for all together.
std::vector<float> clipped(const float* data,
                           const Layout& at,
                           const WeightPlan& plan,
                           const std::vector<float>& widest) {
  std::vector<float> best = widest;
  std::vector<double> least(widest.size(), std::numeric_limits<double>::infinity());
  for (int percent = 100; percent >= 30; percent -= 5) {
    const float share = static_cast<float>(percent) / 100;
    std::vector<double> errors(widest.size(), 0);
    each_number(at, [&](size_t c, size_t k) {
      const float scale = share * widest[c];
      const double error =
          data[k] - rounded(data[k], scale, plan.largest) * static_cast<double>(scale);
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
  double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  if (is_signed) return {positive(std::max(-low, high) / 127), 0};
  float scale = positive((high - low) / 255);
  double zero = std::nearbyint(-low / static_cast<double>(scale));
  return {scale, static_cast<int32_t>(std::clamp(zero, 0.0, 255.0))};
}

Weight quantize_weight(const DLTensor& tensor, const WeightPlan& plan) {
  const float* data = data_of<float>(tensor);
  const Layout at = layout_of(tensor, plan.axis);
  std::vector<double> most(static_cast<size_t>(at.channels), 0);
  each_number(at, [&](size_t c, size_t k) {
    most[c] = std::max(most[c], std::abs(static_cast<double>(data[k])));
  });
  if (!plan.per_channel) most.assign(most.size(), *std::max_element(most.begin(), most.end()));

  Weight out;
  out.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  out.axis = plan.axis;
  for (double one : most)
    out.scale.push_back(positive(one / plan.largest));
  if (plan.clips) out.scale = clipped(data, at, plan, out.scale);
  for (size_t c = 0; c < plan.at_least.size(); ++c)
    out.scale[c] = std::max(out.scale[c], plan.at_least[c]);
  if (!plan.per_channel)
    out.scale.assign(out.scale.size(), *std::max_element(out.scale.begin(), out.scale.end()));
  out.numbers.resize(static_cast<size_t>(element_count(tensor)));
  double signal = 0, noise = 0;
  each_number(at, [&](size_t c, size_t k) {
    const double q = rounded(data[k], out.scale[c], plan.largest);
    out.numbers[k] = static_cast<int8_t>(q);
    double x = data[k], error = x - q * static_cast<double>(out.scale[c]);
    signal += x * x;
    noise += error * error;
  });
  out.snr_db = noise > 0 && signal > 0 ? 10 * std::log10(signal / noise) : 200;
  if (!plan.per_channel) out.scale.resize(1);
  return out;
}

std::vector<float> dequantized(const Weight& weight) {
  int64_t inner = 1, channels = weight.shape[static_cast<size_t>(weight.axis)];
  for (size_t d = static_cast<size_t>(weight.axis) + 1; d < weight.shape.size(); ++d)
    inner *= weight.shape[d];
  std::vector<float> out;
  for (size_t k = 0; k < weight.numbers.size(); ++k) {
    size_t channel = static_cast<size_t>(static_cast<int64_t>(k) / inner % channels);
    float scale = weight.scale[weight.scale.size() == 1 ? 0 : channel];
    out.push_back(scale * static_cast<float>(weight.numbers[k]));
  }
  return out;
}

}  // namespace tenon::quantizer
