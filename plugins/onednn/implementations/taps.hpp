// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arithmetic of ONNX's Resize for one axis: which source coordinates a result coordinate takes,
// and with which weights. Coordinate rules and filters as in ONNX's operator text; cubic weights:
// Keys, "Cubic convolution interpolation for digital image processing" (1981).

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::onednn {

struct ResizeRule {
  enum class Mode : uint8_t { kNearest, kLinear, kCubic };
  Mode mode = Mode::kNearest;
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  double cubic = -0.75;
  bool antialias = false;
  bool exclude_outside = false;
};
struct ResizeAxis {
  int64_t in = 1;
  int64_t out = 1;
  double scale = 1;
  double roi_start = 0;
  double roi_end = 1;

  bool is_same(const ResizeRule& rule) const {
    return in == out && scale == 1 && rule.coordinates != "tf_crop_and_resize";
  }
};

// Of a pixel at distance t, by Keys' cubic with the parameter a.
double cubic_weight(double t, double a);
// The most taps that a result coordinate has.
int64_t tap_count(const ResizeRule& rule, double scale);
// The source coordinate of result coordinate i under kNearest, inside of the axis.
int64_t nearest_tap(const ResizeRule& rule, const ResizeAxis& axis, int64_t i);
// at, weight: [out, taps] of one axis. A coordinate outside of the region of interest gets at -1.
void fill_taps(
    const ResizeRule& rule, const ResizeAxis& axis, int64_t taps, int64_t* at, float* weight);

}  // namespace tenon::onednn
