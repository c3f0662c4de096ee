// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions of [outer, k, inner] over k, dense. inner 1 reduces last axes; inner = channels is
// GlobalAveragePool of channels-last data and mean pooling of [batch, tokens, hidden].
// Any element types (quantized ones are dequantized first and quantized at the end); arithmetic in
// f32 in blocks of at most 4096 values a lane row, the blocks summed in f64. Sums and means of
// 8-bit columns are exact before the last rounding. NaN spreads. k = 0 gives 0 for sums, NaN for
// means, -infinity and infinity for max and min, 1 for products, which are taken in order: rows in
// f64, columns in f32 over 64 rows and those in f64. dst may not overlap src. No alignment is
// required.

#include "context.h"
#include "row_args.h"

namespace tenon::onednn::kernels {

void reduce(const Context& context, const ReduceArgs& args);

}  // namespace tenon::onednn::kernels
