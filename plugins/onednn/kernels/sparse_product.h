// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products with constant weights that are mostly zeros: only what is not zero is stored, read and
// multiplied. Rows of the left operand lie side by side in registers (they are copied so, a block
// of 64 rows at a time), and each weight multiplies all of them: one load of memory for each fused
// multiply-add, so that a product with a tenth of the weights takes a fifth of the time or less
// (Elsen et al. 2019, "Fast Sparse ConvNets", section 3, whose images lie so already).
//
//   reals:  sum[m, n] = sum_k a[m, k] * b[k, n]               in f32, fused where the CPU has it
//   quantized values:  sum[m, n] = sum_k (a[m, k] - zero) * b[k, n]      in i32, exact; needs VNNI
//   y = sum * scales[n] + bias[n], then the epilogue of epilogue_args.h
//
// Blocks: weights are stored one by one (width 1), or four or sixteen columns of one step of k
// together, zeros among them included (width 4, 16): then a number of the left operand is read once
// for all of them. A step of k is one number; of quantized values it is four.
//
// Bound of reals, against exact arithmetic, eps = 2^-24: (k + 2) eps sum_k |a| |b|. A weight that
// is zero takes no part: 0 times infinity or NaN of the left operand is 0 here, unless the weight
// shares a block with another that is not zero. The result does not depend on the number of
// threads, and a row never changes another's.

#include "context.h"
#include "sparse_product_args.h"

namespace tenon::onednn::kernels {

// Where rows of the left operand lie: lines of images, as a convolution of 1x1 with strides reads
// them. A matrix is one line.
struct SparseRows {
  Source src = {};       // kF32, kBf16; kU8, kS8: quantized values, quant has their zero point
  int64_t stride = 0;    // elements from one row to the next of a line
  int64_t of_line = 0;   // rows; 0: there are no lines
  int64_t line = 0;      // elements from one line to the next
  int64_t of_image = 0;  // lines
  int64_t image = 0;     // elements from one image to the next
};

// dst: kF32, kBf16, kU8, kS8.
struct SparseProductArgs : ProductResult {
  SparseRows a = {};
  SparseColumns b = {};
  int64_t m = 0, n = 0, k = 0;
  void* scratch = nullptr;  // sparse_scratch_bytes, aligned to 64 bytes
};

// Steps of k are counted in 16 bits.
constexpr int64_t kMostSparseSteps = 65535;
constexpr int64_t sparse_steps(int64_t k, bool are_quantized) {
  return are_quantized ? (k + kSparseFour - 1) / kSparseFour : k;
}
constexpr int64_t sparse_columns(int64_t n) {
  return (n + kSparsePanel - 1) / kSparsePanel * kSparsePanel;
}
constexpr int64_t sparse_scratch_bytes(int64_t m, int64_t k, bool are_quantized) {
  return (m + kSparseGroup - 1) / kSparseGroup * kSparseGroup * sparse_steps(k, are_quantized) * 4;
}
// Whether quantized values can be multiplied at this level on this CPU.
bool multiplies_sparse_int8(const Context& context);

// Weights before they are packed: (k, n) lies at data[k * k_stride + n * n_stride].
struct SparseWeights {
  const void* data = nullptr;
  bool are_quantized = false;  // s8; else f32
  int64_t k = 0, n = 0;
  int64_t k_stride = 0, n_stride = 0;
};
// Blocks of this width with a number other than zero.
int64_t count_sparse_blocks(const SparseWeights& weights, int64_t width);
int64_t packed_sparse_bytes(const SparseWeights& weights, int64_t width, int64_t n_blocks);
// to: packed_sparse_bytes, aligned to 64 bytes.
void pack_sparse(const SparseWeights& weights, int64_t width, int64_t n_blocks, void* to);
// Where the parts of what is packed lie. Of `weights` the sizes alone are read.
SparseColumns unpacked_sparse(const SparseWeights& weights,
                              int64_t width,
                              int64_t n_blocks,
                              const void* packed);

// k, n, m of 0 give what an empty sum gives.
void sparse_product(const Context& context, const SparseProductArgs& args);

}  // namespace tenon::onednn::kernels
