// SPDX-License-Identifier: Apache-2.0
#pragma once
// Softmax and LogSoftmax over one axis, with attention's scale and additive mask in front:
//   y = softmax(scale * x + mask), x: [d0, d1, d2, n], as scores [batch, heads, rows, n].
// Where other axes lie behind it, x is [d0, d1, d2, n, inner], and there is no mask.
// The mask broadcasts by strides: [batch, 1, 1, n] has mask_strides {n, 0, 0, 1}.
// One pass over memory while a row fits 16 KiB as f32. Longer rows are read twice where the result
// is f32, which keeps the exponentials until their sum is known, and else three times. Any element
// types; arithmetic in f32, sums over lanes and then over blocks of 4096 in f64. A row that is all
// -infinity, or has +infinity or NaN, gives NaN, as the formula does. dst may be src when the types
// have the same size, and may not overlap the mask. No alignment is required.

#include "context.h"
#include "row_args.h"

namespace tenon::onednn::kernels {

void softmax(const Context& context, const SoftmaxArgs& args);

// dst = scale * y * (dy - sum(dy * y)), row by row: the gradient of softmax over the last axis, of
// its result y. f32 or bf16; arithmetic in f32, sums over lanes. dst may be y or dy.
void softmax_grad(const Context& context, const SoftmaxGradArgs& args);

}  // namespace tenon::onednn::kernels
