// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scales: of activations from ranges, of weights from the numbers themselves.

#include <cstdint>
#include <vector>

#include "tenon/role/observer.h"

#include "tenon/sdk/tensor.hpp"

namespace tenon::quantizer {

struct Params {
  float scale = 1;
  int32_t zero_point = 0;
};

// is_signed: symmetric int8 with zero point 0; else uint8. 0 is always exact.
Params params_for(const tn_range& range, bool is_signed);

struct Weight {
  std::vector<int64_t> shape;
  std::vector<int8_t> numbers;
  std::vector<float> scale;  // [channels], or one
  int64_t axis = 0;
  double snr_db = 0;  // of the rounded weight against the weight
};

// Zero points of weights are all 0, which is what none stands for, and a tenth of the bytes of a
// 3x3 depthwise filter. Runtimes that fuse products by them (ONNX Runtime's QGemm) require them.
inline bool has_zero_points(size_t rank) {
  return rank <= 2;
}

struct WeightPlan {
  int64_t axis = 0;
  bool per_channel = true;
  int32_t largest = 127;  // 63: 7 bits, for CPUs whose 8-bit products saturate
  // Lower bounds of the scales, [channels], or empty: so that a bias fits into int32.
  std::vector<float> at_least = {};
  bool clips = false;  // scales that cut the largest numbers are tried, by squared error
};

// Of f32.
bool all_finite(const DLTensor& tensor);
// tensor: float32, dense, rank above axis.
Weight quantize_weight(const DLTensor& tensor, const WeightPlan& plan);
// The dequantized weight, in the weight's order.
std::vector<float> dequantized(const Weight& weight);

}  // namespace tenon::quantizer
