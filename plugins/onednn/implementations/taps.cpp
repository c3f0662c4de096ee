// SPDX-License-Identifier: Apache-2.0
#include "taps.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::onednn {

double cubic_weight(double t, double a) {
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

namespace {

// The result's size before it was cut to an integer, and the very size where that was given: so
// that halves, where nearest elements change, are met exactly.
double unrounded_size(const ResizeAxis& a) {
  const double size = a.scale * static_cast<double>(a.in), out = static_cast<double>(a.out);
  return std::fabs(size - out) < 1e-9 * out ? out : size;
}

// Where in the source result coordinate i lies.
double source_of(const ResizeRule& rule, const ResizeAxis& a, int64_t i) {
  const double x = static_cast<double>(i);
  const double in = static_cast<double>(a.in);
  const double unrounded = unrounded_size(a);
  const double half_pixel = (x + 0.5) * in / unrounded - 0.5;
  if (rule.coordinates == "asymmetric") return x * in / unrounded;
  if (rule.coordinates == "align_corners") {
    return unrounded == 1 ? 0 : x * (in - 1) / (unrounded - 1);
  }
  if (rule.coordinates == "pytorch_half_pixel") return a.out > 1 ? half_pixel : 0;
  if (rule.coordinates == "half_pixel_symmetric") {
    return in / 2 * (1 - static_cast<double>(a.out) / unrounded) + half_pixel;
  }
  if (rule.coordinates == "tf_crop_and_resize") {
    if (a.out == 1) return 0.5 * (a.roi_start + a.roi_end) * (in - 1);
    const double step = (a.roi_end - a.roi_start) * (in - 1) / static_cast<double>(a.out - 1);
    return a.roi_start * (in - 1) + x * step;
  }
  return half_pixel;
}

double nearest_of(const std::string& rule, double x) {
  if (rule == "floor") return std::floor(x);
  if (rule == "ceil") return std::ceil(x);
  if (rule == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}

// How far a filter reaches to each side; antialiasing widens it when the axis shrinks.
double stretch_of(const ResizeRule& rule, double scale) {
  return rule.antialias ? std::max(1.0, 1 / scale) : 1.0;
}
double reach_of(const ResizeRule& rule, double scale) {
  return (rule.mode == ResizeRule::Mode::kCubic ? 2 : 1) * stretch_of(rule, scale);
}

void fill_filter(
    const ResizeRule& rule, const ResizeAxis& a, double x, int64_t* at, float* weight) {
  const double reach = reach_of(rule, a.scale);
  const double stretch = stretch_of(rule, a.scale);
  const int64_t first = static_cast<int64_t>(std::floor(x - reach)) + 1;
  const int64_t last = static_cast<int64_t>(std::ceil(x + reach)) - 1;
  auto weight_at = [&](int64_t place) {
    if (rule.exclude_outside && (place < 0 || place >= a.in)) return 0.0;
    const double t = (static_cast<double>(place) - x) / stretch;
    return rule.mode == ResizeRule::Mode::kCubic ? cubic_weight(t, rule.cubic)
                                                 : std::max(0.0, 1 - std::fabs(t));
  };
  double sum = 0;
  for (int64_t place = first; place <= last; ++place)
    sum += weight_at(place);
  for (int64_t place = first; place <= last; ++place) {
    *at++ = std::clamp<int64_t>(place, 0, a.in - 1);
    *weight++ = static_cast<float>(sum == 0 ? 0 : weight_at(place) / sum);
  }
}

}  // namespace

int64_t tap_count(const ResizeRule& rule, double scale) {
  if (rule.mode == ResizeRule::Mode::kNearest) return 1;
  return 2 * static_cast<int64_t>(std::ceil(reach_of(rule, scale))) + 1;
}

int64_t nearest_tap(const ResizeRule& rule, const ResizeAxis& axis, int64_t i) {
  const double nearest = nearest_of(rule.nearest, source_of(rule, axis, i));
  return static_cast<int64_t>(std::clamp(nearest, 0.0, static_cast<double>(axis.in - 1)));
}

void fill_taps(
    const ResizeRule& rule, const ResizeAxis& axis, int64_t taps, int64_t* at, float* weight) {
  for (int64_t i = 0; i < axis.out; ++i, at += taps, weight += taps) {
    std::fill_n(at, taps, 0);
    std::fill_n(weight, taps, 0.0F);
    const double x = source_of(rule, axis, i);
    const double edge = static_cast<double>(axis.in - 1);
    if (rule.coordinates == "tf_crop_and_resize" && !(x >= 0 && x <= edge)) {
      at[0] = -1;
    } else if (rule.mode == ResizeRule::Mode::kNearest) {
      at[0] = nearest_tap(rule, axis, i);
      weight[0] = 1;
    } else {
      fill_filter(rule, axis, x, at, weight);
    }
  }
}

}  // namespace tenon::onednn
