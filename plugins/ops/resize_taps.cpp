// SPDX-License-Identifier: Apache-2.0
#include "resize_taps.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::ops::resizing {

Settings settings_of(Node node) {
  return {std::string(node.attr_text("mode", "nearest")),
          std::string(node.attr_text("coordinate_transformation_mode", "half_pixel")),
          std::string(node.attr_text("nearest_mode", "round_prefer_floor")),
          node.attr_float("cubic_coeff_a", -0.75),
          node.attr_int("antialias") != 0,
          node.attr_int("exclude_outside") != 0};
}

namespace {

// The output size before it was rounded, and the very size where that was given: so that halves,
// where nearest elements change, are met exactly.
double unrounded_size(const Axis& a) {
  const double size = a.scale * static_cast<double>(a.in), out = static_cast<double>(a.out);
  return std::fabs(size - out) < 1e-9 * out ? out : size;
}

// As ONNX's reference implementation has it: align_corners divides by the unrounded size. (PyTorch
// and ONNX Runtime take the rounded one, which differs where scales leave a fraction.)
double source_of(const Settings& s, const Axis& a, int64_t i) {
  auto x = static_cast<double>(i), in = static_cast<double>(a.in), out = static_cast<double>(a.out);
  const double exact = unrounded_size(a);
  const double half_pixel = (x + 0.5) * in / exact - 0.5;
  if (s.rule == "asymmetric") return x * in / exact;
  if (s.rule == "align_corners") return exact == 1 ? 0 : x * (in - 1) / (exact - 1);
  if (s.rule == "pytorch_half_pixel") return a.out > 1 ? half_pixel : 0;
  if (s.rule == "half_pixel_symmetric") {
    // Centres what a rounded output size leaves over.
    double adjustment = out / exact;
    return in / 2 * (1 - adjustment) + half_pixel;
  }
  if (s.rule == "tf_crop_and_resize") {
    if (a.out == 1) return 0.5 * (a.roi_start + a.roi_end) * (in - 1);
    return a.roi_start * (in - 1) + x * (a.roi_end - a.roi_start) * (in - 1) / (out - 1);
  }
  return half_pixel;
}

int64_t nearest_of(const std::string& mode, double x) {
  if (mode == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  return static_cast<int64_t>(std::ceil(x - 0.5));
}

// Keys (1981), with coefficient a.
double cubic_weight(double t, double a) {
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

}  // namespace

Taps taps_of(const Settings& s, const Axis& a, int64_t i) {
  Taps taps;
  if (a.in == a.out && a.scale == 1 && s.rule != "tf_crop_and_resize") return {{i}, {1.0}};
  double x = source_of(s, a, i);
  taps.outside = s.rule == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.in - 1));
  if (s.mode == "nearest")
    return {{std::clamp<int64_t>(nearest_of(s.nearest, x), 0, a.in - 1)}, {1.0}, taps.outside};
  bool cubic = s.mode == "cubic";
  double stretch = s.antialias ? std::max(1.0, 1 / a.scale) : 1.0;  // widens the filter
  double reach = (cubic ? 2 : 1) * stretch, sum = 0;
  auto first = static_cast<int64_t>(std::floor(x - reach)) + 1;
  auto last = static_cast<int64_t>(std::ceil(x + reach)) - 1;
  for (int64_t at = first; at <= last; ++at) {
    double t = (static_cast<double>(at) - x) / stretch;
    double weight = cubic ? cubic_weight(t, s.cubic) : std::max(0.0, 1 - std::fabs(t));
    if (s.exclude_outside && (at < 0 || at >= a.in)) continue;
    taps.at.push_back(std::clamp<int64_t>(at, 0, a.in - 1));
    taps.weight.push_back(weight);
    sum += weight;
  }
  for (double& weight : taps.weight)
    weight = sum == 0 ? weight : weight / sum;
  return taps;
}

}  // namespace tenon::ops::resizing
