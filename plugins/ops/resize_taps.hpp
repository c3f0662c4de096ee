// SPDX-License-Identifier: Apache-2.0
#pragma once
// Resize along one axis: which elements of the input an output coordinate meets, and with which
// weights, by ONNX's modes and coordinate rules.

#include <string>
#include <vector>

#include "dims.hpp"

namespace tenon::ops::resizing {

// Weights of input positions for one output coordinate.
struct Taps {
  std::vector<int64_t> at;
  std::vector<double> weight;
  bool outside = false;  // tf_crop_and_resize: the extrapolation value
};

struct Settings {
  std::string mode, rule, nearest;
  double cubic = -0.75;
  bool antialias = false, exclude_outside = false;
};

Settings settings_of(Node node);

// How one axis is resized.
struct Axis {
  int64_t in = 1, out = 1;
  double scale = 1, roi_start = 0, roi_end = 1;
};

Taps taps_of(const Settings& s, const Axis& a, int64_t i);

}  // namespace tenon::ops::resizing
