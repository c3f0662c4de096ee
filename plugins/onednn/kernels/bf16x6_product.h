// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of f32 numbers on AMX tiles, with the accuracy of f32: each operand is the sum of three
// bf16 parts, x = x0 + x1 + x2 exactly, and six of the nine products of parts are summed in f32;
// the other three are below 2^-22 of the product. (Henry, Tang, Heinecke: Leveraging the bfloat16
// Artificial Intelligence Datatype for Higher-Precision Computations, ARITH 2019; the name is that
// of XLA's dot algorithm BF16_BF16_F32_X6.) Operands are split while the product runs.
//
//   sum[m, n] = sum_k a[m, k] * b[k, n]
//   y = sum * scales[n] + bias[n], then the epilogue of epilogue_args.h
//
// The left operand may be what the windows of a convolution see, zeros outside of the images.
//
// Bound, against exact arithmetic, eps = 2^-24: (6 ceil(k / 32) + 36) eps sum_k |a| |b|, and
// 2^-126 (|a| + |b|) for each k beside it: parts that are denormal count as zero, whatever MXCSR
// says. A row with an infinity, a NaN or a number above 2^128 (1 - 2^-9) is multiplied in f32 on
// vectors instead, as it has no such parts; so are all rows times the 32 columns of a panel that
// has one. The bits of a row depend neither on the other rows nor on the number of threads.

#include "bf16x6_product_args.h"
#include "context.h"

namespace tenon::onednn::kernels {

// Whether all numbers have parts. has_tiles() must hold, as for all here.
bool have_parts(const float* numbers, int64_t n);

// How work is divided so that it takes the least time, for all products of this size.
SplitCut cut_product(int64_t m, int64_t n, int64_t k, int threads);

// has_tiles() must hold.
void bf16x6_product(const Context& context, const SplitProductArgs& args);

}  // namespace tenon::onednn::kernels
