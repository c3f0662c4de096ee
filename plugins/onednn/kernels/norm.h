// SPDX-License-Identifier: Apache-2.0
#pragma once
// Normalization of rows [rows, n], x = src (+ residual):
//   kLayer: (x - mean) / sqrt(var + epsilon) * gamma + beta    var over n, not n - 1
//   kRms:   x / sqrt(mean(x^2) + epsilon) * gamma + beta
//   kL2:    x / max(sqrt(sum(x^2)), epsilon) * gamma + beta
//   kCentre: (x - mean) * gamma + beta     inv_std as of kLayer
// gamma, beta, factors, residual, sum, dst2, mean and inv_std may be null. inv_std is what x - mean
// is multiplied with. dst2 takes the same f32 result, times factors, in another type or
// quantization; without dst2 factors are those of dst. One pass over memory while a row fits 32 KiB
// as f32; longer rows are read again per pass. Mean and variance are two passes over the row in
// f32, summed over lanes and then over blocks in f64; what rounding leaves of the mean is found in
// the second (the corrected two-pass algorithm: Chan, Golub & LeVeque 1983, "Algorithms for
// Computing the Sample Variance", section 2). sum and dst may each be src or residual when the
// types have the same size. No alignment required.

#include "context.h"
#include "row_args.h"

namespace tenon::onednn::kernels {

void normalize(const Context& context, const NormArgs& args);

}  // namespace tenon::onednn::kernels
