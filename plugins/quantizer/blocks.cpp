// SPDX-License-Identifier: Apache-2.0
#include "blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::quantizer {
namespace {

constexpr double kLow = -8, kHigh = 7;
constexpr int kTries = 16;  // scales between the widest and 0.7 of it

double squared_error(const std::vector<double>& block, double scale) {
  double error = 0;
  for (double x : block) {
    double back = std::clamp(std::nearbyint(x / scale), kLow, kHigh) * scale;
    error += (x - back) * (x - back);
  }
  return error;
}

// The largest magnitude over 7, or the scale up to 30 % below it with the smallest squared error.
float scale_of(const std::vector<double>& block, bool clips) {
  double most = 0;
  for (double x : block)
    most = std::max(most, std::abs(x));
  if (most == 0) return 1;
  double best = most / kHigh, least = squared_error(block, best);
  for (int i = 1; clips && i <= kTries; ++i) {
    double scale = most / kHigh * (1 - 0.3 * i / kTries), error = squared_error(block, scale);
    if (error >= least) continue;
    least = error;
    best = scale;
  }
  return std::max(static_cast<float>(best), std::numeric_limits<float>::min());
}

}  // namespace

Blocks quantize_blocks(const DLTensor& tensor, const BlockPlan& plan) {
  Blocks out;
  out.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  out.axis = plan.axis;
  out.size = plan.size;
  int64_t outer = 1, inner = 1, along = tensor.shape[plan.axis];
  for (int32_t d = 0; d < tensor.ndim; ++d)
    if (d != plan.axis) (d < plan.axis ? outer : inner) *= tensor.shape[d];
  int64_t blocks = (along + plan.size - 1) / plan.size;
  out.scale_shape = out.shape;
  out.scale_shape[static_cast<size_t>(plan.axis)] = blocks;
  out.quantized.resize(static_cast<size_t>(outer * along * inner));
  out.scale.resize(static_cast<size_t>(outer * blocks * inner));
  const float* data = data_of<const float>(tensor);
  double signal = 0, noise = 0;
  std::vector<double> block;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t i = 0; i < inner; ++i) {
        int64_t end = std::min(along, (b + 1) * plan.size);
        block.clear();
        for (int64_t k = b * plan.size; k < end; ++k)
          block.push_back(static_cast<double>(data[(o * along + k) * inner + i]));
        float scale = scale_of(block, plan.clips);
        out.scale[static_cast<size_t>((o * blocks + b) * inner + i)] = scale;
        for (int64_t k = b * plan.size; k < end; ++k) {
          auto at = static_cast<size_t>((o * along + k) * inner + i);
          double x = static_cast<double>(data[at]);
          double q = std::clamp(static_cast<double>(std::nearbyint(data[at] / scale)), kLow, kHigh);
          double error = x - q * static_cast<double>(scale);
          out.quantized[at] = static_cast<int8_t>(q);
          signal += x * x;
          noise += error * error;
        }
      }
  out.snr_db = noise > 0 && signal > 0 ? 10 * std::log10(signal / noise) : 200;
  return out;
}

std::vector<uint8_t> packed(const std::vector<int8_t>& quantized) {
  std::vector<uint8_t> out((quantized.size() + 1) / 2, 0);
  for (size_t i = 0; i < quantized.size(); ++i)
    out[i / 2] |= static_cast<uint8_t>((static_cast<uint8_t>(quantized[i]) & 15u) << (i % 2 * 4));
  return out;
}

std::vector<int8_t> unpacked(const uint8_t* bytes, size_t count, bool is_signed) {
  std::vector<int8_t> out(count);
  for (size_t i = 0; i < count; ++i) {
    int code = bytes[i / 2] >> (i % 2 * 4) & 15;
    out[i] = static_cast<int8_t>(is_signed && code > 7 ? code - 16 : code);
  }
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
