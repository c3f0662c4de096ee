// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a decoded picture to the numbers that a model was trained on: resize, centre crop, scale,
// mean, standard deviation, channel order, layout. All of it is declared by options.

#include <cstdint>
#include <vector>

#include "tenon/sdk/any.hpp"

#include "picture.hpp"

namespace tenon::datasets {

struct Preparation {
  std::vector<int64_t> resize;  // empty, [shorter side], or [height, width]
  std::vector<int64_t> crop;    // empty, or [height, width] from the centre
  int64_t channels = 3;
  double scale = 1.0 / 255;
  std::vector<double> mean, deviation;  // [channels], after scaling
  bool bgr = false;
  bool channels_last = false;

  static Result<Preparation> from(const Options& options);
  Result<Picture> shaped(Picture picture) const;
  void write(const Picture& picture, float* out) const;  // channels * height * width numbers
  std::vector<int64_t> shape(int64_t height, int64_t width) const;
};

}  // namespace tenon::datasets
