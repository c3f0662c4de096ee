// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of fold.h, as level/ sees them too.

#include <cstdint>

namespace tenon::onednn::kernels {

constexpr int kFoldAxes = 3;
constexpr int64_t kMostFoldStride = 16;  // along the last axis

// columns: [images, channels, window[0..2], from[0..2]], bias: [channels] or nullptr,
// dst: [images, channels, to[0..2]], all dense f32. Axes that are not there have the extent 1.
struct FoldArgs {
  const float* columns = nullptr;
  const float* bias = nullptr;
  float* dst = nullptr;
  int64_t images = 0;
  int64_t channels = 0;
  int64_t window[kFoldAxes] = {1, 1, 1};
  int64_t from[kFoldAxes] = {1, 1, 1};
  int64_t to[kFoldAxes] = {1, 1, 1};
  int64_t strides[kFoldAxes] = {1, 1, 1};
  int64_t dilations[kFoldAxes] = {1, 1, 1};
  int64_t padding[kFoldAxes] = {0, 0, 0};  // in front
};

}  // namespace tenon::onednn::kernels
