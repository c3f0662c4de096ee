// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of f32 numbers with constant weights in panels. Nothing here depends on the number of
// rows: one packed form and one piece of machine code serve all of them, where oneDNN's kernels are
// made anew for each, in half a millisecond and more.
//
//   sum[m, n] = sum_k a[m, k] * b[k, n]      in f32, k in order, fused where the CPU has it
//   y = sum * scales[n] + bias[n], then the epilogue of epilogue_args.h
//
// Bound, against exact arithmetic, eps = 2^-24: (k + 2) eps sum_k |a| |b|. The bits of a row depend
// neither on the other rows nor on the number of threads.

#include "context.h"
#include "float_product_args.h"

namespace tenon::onednn::kernels {

// dst: kF32, kBf16, kU8, kS8; scales and bias: [float_columns(n)].
struct FloatProductArgs : ProductResult {
  const float* a = nullptr;
  int64_t a_stride = 0;      // elements between rows
  const float* b = nullptr;  // packed
  int64_t m = 0, n = 0, k = 0;
};

// The right operand lies in panels of so many columns: [panels][k][column].
int64_t float_panel(const Context& context);
constexpr int64_t kMostFloatPanel = 64;
// What scales and bias of n columns have, at every level.
constexpr int64_t float_columns(int64_t n) {
  return (n + kMostFloatPanel - 1) / kMostFloatPanel * kMostFloatPanel;
}
// Element [k, n] at data[k * k_stride + n * n_stride], or at data[k_places[k] + n * n_stride].
struct FloatWeights {
  const float* data = nullptr;
  int64_t k = 0, n = 0;
  int64_t k_stride = 0, n_stride = 0;
  const int64_t* k_places = nullptr;

  const float* row(int64_t i) const {
    return data + (k_places != nullptr ? k_places[i] : i * k_stride);
  }
};
constexpr int64_t packed_float_bytes(const FloatWeights& weights, int64_t panel) {
  return weights.k * ((weights.n + panel - 1) / panel * panel) * 4;
}
// Columns that are not there are zero.
void pack_floats(const FloatWeights& weights, int64_t panel, float* packed);

void float_product(const Context& context, const FloatProductArgs& args);

}  // namespace tenon::onednn::kernels
