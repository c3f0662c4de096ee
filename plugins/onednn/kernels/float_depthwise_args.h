// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the floating-point depthwise convolution, as level/ sees them too; contract in
// float_depthwise.h.

#include <cstdint>

#include "epilogue_args.h"
#include "windows.h"

namespace tenon::onednn::kernels {

// Weights and bias have so many channels or a multiple of it, zeros behind the last one.
constexpr int64_t kFloatDepthwiseBlock = 16;
constexpr int64_t float_depthwise_channels(int64_t channels) {
  return (channels + kFloatDepthwiseBlock - 1) / kFloatDepthwiseBlock * kFloatDepthwiseBlock;
}

struct FloatDepthwiseArgs {
  ElementType type = ElementType::kF32;  // of src and dst: kF32 or kBf16
  const void* src = nullptr;             // [images, height, width, channels]
  void* dst = nullptr;                   // [images, out_height, out_width, channels]
  const float* weights = nullptr;        // [window_height, window_width, padded channels]
  const float* bias = nullptr;           // [padded channels]
  const void* outside = nullptr;         // [channels] of src's type: zeros
  int64_t images = 0;
  int64_t channels = 0;
  Windows windows = {};
  const EpilogueOp* ops = nullptr;  // none with an operand of its own
  int n_ops = 0;
  float low = -__builtin_inff();
  float high = __builtin_inff();
};

}  // namespace tenon::onednn::kernels
