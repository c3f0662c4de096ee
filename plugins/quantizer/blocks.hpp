// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights in 4 bits with a scale for each block of numbers that one sum goes over: DequantizeLinear
// with `block_size`, int4, two elements in a byte (ONNX opset 21).

#include <cstdint>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::quantizer {

struct BlockPlan {
  int64_t axis = 0;   // of the weight, what is summed over
  int64_t size = 32;  // numbers in a block; the last one of a row may have fewer
  bool clips = true;  // see block_grid
};

struct Blocks {
  std::vector<int64_t> shape, scale_shape;
  int64_t axis = 0, size = 0;
  std::vector<int8_t> quantized;  // [shape], -8 to 7
  std::vector<float> scale;       // [scale_shape]: ceil(shape[axis] / size) along the axis
  double snr_db = 0;
};

// tensor: float32, dense, finite.
Blocks quantize_blocks(const DLTensor& tensor, const BlockPlan& plan);
// Stands for the weight: a DequantizeLinear.
Result<Value> add_blocks(EditView edit, std::string_view name, const Blocks& blocks);

// 4-bit elements as bytes, the first one in the low half.
std::vector<uint8_t> packed(const std::vector<int8_t>& quantized);

}  // namespace tenon::quantizer
