// SPDX-License-Identifier: Apache-2.0
#pragma once
// Between floating-point numbers and 8-bit integers, exactly as ONNX has it (halves to even, the
// zero point added after rounding, saturating, a true division by the scale, no fused rounding), so
// that results equal QuantizeLinear and DequantizeLinear bit for bit. NaN becomes the lowest value.
// No alignment is required; dst may be src when the element sizes are equal.
//
// - quantize: f32, bf16 or f16 -> u8 or s8. dequantize: u8, s8 or i32 -> f32, bf16 or f16.
//   Per tensor, per channel along one axis, or per block of an axis.
// - dynamic_quantize: f32 -> u8 with a scale and a zero point of the numbers themselves, 0 always
// among
//   them; NaN has no part in that.
// - requantize: y = saturate(round((acc + bias) * scale) + zero_point) from i32 accumulators; the
// sum
//   wraps, its conversion to f32 rounds above 2^24.
// - quantized_add: y = quantize(dequantize(a) + dequantize(b)), with ReLU between on request.
// - map_bytes: y = table[x], any function of one 8-bit value; make_table evaluates a pointwise
//   program (one input, node 'result') for all 256 values.

#include <span>
#include <string>

#include "tenon/expr.h"

#include "context.h"
#include "quantize_args.h"

namespace tenon::onednn::kernels {

void quantize(const Context& context, const QuantizeArgs& args);
void dequantize(const Context& context, const QuantizeArgs& args);
// x, y: [n]; scale, zero: [1]
void dynamic_quantize(
    const Context& context, const float* x, int64_t n, uint8_t* y, float* scale, uint8_t* zero);
void requantize(const Context& context, const RequantizeArgs& args);
void quantized_add(const Context& context, const QuantizedAddArgs& args);
// table: [256], indexed by the byte, also where that is an s8. src may be dst. Who has cut the work
// into rows itself calls the level's kernel of this name.
void map_bytes(
    const Context& context, const uint8_t* table, const uint8_t* src, int64_t n, uint8_t* dst);
// src and dst name u8 or s8 with their quantization; their data is not read. Empty on success.
[[nodiscard]] std::string make_table(std::span<const tn_expr_node> nodes,
                                     uint32_t result,
                                     const Source& src,
                                     const Target& dst,
                                     uint8_t* table);

}  // namespace tenon::onednn::kernels
