// SPDX-License-Identifier: Apache-2.0
#include "blocks.hpp"

#include <algorithm>

#include "tenon/sdk/decibels.hpp"

#include "algorithms/round_trip.hpp"

namespace tenon::quantizer {
Blocks quantize_blocks(const DLTensor& tensor, const BlockPlan& plan) {
  Blocks out;
  out.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  out.axis = plan.axis;
  out.size = plan.size;
  const auto [outer, along, inner] = AxisSplit(shape_of(tensor), plan.axis);
  int64_t blocks = (along + plan.size - 1) / plan.size;
  out.scale_shape = out.shape;
  out.scale_shape[static_cast<size_t>(plan.axis)] = blocks;
  out.quantized.resize(static_cast<size_t>(outer * along * inner));
  out.scale.resize(static_cast<size_t>(outer * blocks * inner));
  const float* data = data_of<const float>(tensor);
  double signal = 0, noise = 0;
  std::vector<float> block;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t i = 0; i < inner; ++i) {
        int64_t end = std::min(along, (b + 1) * plan.size);
        block.clear();
        for (int64_t k = b * plan.size; k < end; ++k)
          block.push_back(data[(o * along + k) * inner + i]);
        const Grid grid = block_grid(block, plan.clips);
        out.scale[static_cast<size_t>((o * blocks + b) * inner + i)] = grid.scale;
        for (int64_t k = b * plan.size; k < end; ++k) {
          auto at = static_cast<size_t>((o * along + k) * inner + i);
          double x = static_cast<double>(data[at]);
          double q = grid.quantized(data[at]), error = x - q * static_cast<double>(grid.scale);
          out.quantized[at] = static_cast<int8_t>(q);
          signal += x * x;
          noise += error * error;
        }
      }
  out.snr_db = decibels(signal, noise);
  return out;
}

std::vector<uint8_t> packed(const std::vector<int8_t>& quantized) {
  std::vector<uint8_t> out((quantized.size() + 1) / 2, 0);
  for (size_t i = 0; i < quantized.size(); ++i)
    out[i / 2] |= static_cast<uint8_t>((static_cast<uint8_t>(quantized[i]) & 15u) << (i % 2 * 4));
  return out;
}

Result<Value> add_blocks(EditView edit, std::string_view stated_name, const Blocks& blocks) {
  std::string name(stated_name), back = name + "_dequantized";
  TN_TRY(quantized, edit.constant<uint8_t>(TN_I4, blocks.shape, packed(blocks.quantized),
                                           name + "_quantized"));
  TN_TRY(scale, edit.constant<float>(TN_F32, blocks.scale_shape, blocks.scale, name + "_scale"));
  TN_TRY(dq, edit.add({.type = "DequantizeLinear",
                       .inputs = {quantized, scale},
                       .attrs = {{"axis", blocks.axis}, {"block_size", blocks.size}},
                       .name = back,
                       .output_names = {back}}));
  return dq.output();
}

}  // namespace tenon::quantizer
