// SPDX-License-Identifier: Apache-2.0
// Softmax and normalization: one block per row, sums in float; where rows are short and their
// elements neighbours, a warp per row, which it keeps in registers.
#include "row_args.h"
#include "warp_row.cuh"

namespace tn {

template <class E>
TN_FN void softmax(const SoftmaxArgs& args) {
  for (u64 row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const u64 base = row / args.inner * args.cols * args.inner + row % args.inner;
    const E* x = static_cast<const E*>(args.x) + base;
    E* y = static_cast<E*>(args.y) + base;
    float most = -infinity();
    for (u64 j = threadIdx.x; j < args.cols; j += blockDim.x)
      most = high(most, value(x[j * args.inner]));
    most = over_block(most, Highest(), -infinity());
    float sum = 0;
    for (u64 j = threadIdx.x; j < args.cols; j += blockDim.x)
      sum += expf(value(x[j * args.inner]) - most);
    sum = over_block(sum, Sum(), 0.0f);
    const float scale = 1 / sum, log_sum = logf(sum);
    for (u64 j = threadIdx.x; j < args.cols; j += blockDim.x) {
      float shifted = value(x[j * args.inner]) - most;
      y[j * args.inner] = Convert<E>::from(args.is_log ? shifted - log_sum : expf(shifted) * scale);
    }
  }
}

template <class E>
TN_FN void norm(const NormArgs& args) {
  const E* scale = static_cast<const E*>(args.scale);
  const E* bias = static_cast<const E*>(args.bias);
  const float n = static_cast<float>(args.cols);
  for (u64 row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const E* x = static_cast<const E*>(args.x) + row * args.cols;
    E* y = static_cast<E*>(args.y) + row * args.cols;
    float mean = 0;
    if (!args.is_rms) {
      for (u64 j = threadIdx.x; j < args.cols; j += blockDim.x)
        mean += value(x[j]);
      mean = over_block(mean, Sum(), 0.0f) / n;
    }
    float squares = 0;
    for (u64 j = threadIdx.x; j < args.cols; j += blockDim.x) {
      float d = value(x[j]) - mean;
      squares += d * d;
    }
    const float inv_std = 1 / sqrtf(over_block(squares, Sum(), 0.0f) / n + args.epsilon);
    for (u64 j = threadIdx.x; j < args.cols; j += blockDim.x) {
      float r = (value(x[j]) - mean) * inv_std;
      if (scale) r *= value(scale[j]);
      if (bias) r += value(bias[j]);
      y[j] = Convert<E>::from(r);
    }
    if (threadIdx.x == 0) {
      if (args.mean) args.mean[row] = mean;
      if (args.inv_std) args.inv_std[row] = inv_std;
    }
  }
}

template <class E, int N, int K>
TN_FN void softmax_warps(const SoftmaxArgs& args) {
  for_each_warp_row(args.rows, [&](u64 row, bool is_row) {
    WarpRow<E, N, K> r;
    r.load(static_cast<const E*>(args.x) + row * args.cols, args.cols, -infinity());
    float most = -infinity();
    r.each([&](float& x, u64) { most = high(most, x); });
    most = over_warp(most, Highest());
    float sum = 0;
    r.each([&](float& x, u64) {
      x -= most;
      const float e = expf(x);
      sum += e;
      if (!args.is_log) x = e;
    });
    sum = over_warp(sum, Sum());
    const float scale = 1 / sum, log_sum = logf(sum);
    r.each([&](float& x, u64) { x = args.is_log ? x - log_sum : x * scale; });
    if (is_row) r.store(static_cast<E*>(args.y) + row * args.cols, args.cols);
  });
}

template <class E, int N, int K>
TN_FN void norm_warps(const NormArgs& args) {
  const E* scale = static_cast<const E*>(args.scale);
  const E* bias = static_cast<const E*>(args.bias);
  const float n = static_cast<float>(args.cols);
  for_each_warp_row(args.rows, [&](u64 row, bool is_row) {
    WarpRow<E, N, K> r;
    r.load(static_cast<const E*>(args.x) + row * args.cols, args.cols, 0);
    float mean = 0, squares = 0;
    r.each([&](float& x, u64) { mean += x; });
    mean = args.is_rms ? 0 : over_warp(mean, Sum()) / n;
    r.each([&](float& x, u64 j) {
      x -= mean;
      if (j < args.cols) squares += x * x;
    });
    const float inv_std = 1 / sqrtf(over_warp(squares, Sum()) / n + args.epsilon);
    r.each([&](float& x, u64 j) {
      if (j >= args.cols) return;
      x *= inv_std;
      if (scale) x *= value(scale[j]);
      if (bias) x += value(bias[j]);
    });
    if (!is_row) return;
    r.store(static_cast<E*>(args.y) + row * args.cols, args.cols);
    if (threadIdx.x % 32 == 0) {
      if (args.mean) args.mean[row] = mean;
      if (args.inv_std) args.inv_std[row] = inv_std;
    }
  });
}

}  // namespace tn

#define TN_ROWS(name, E)                              \
  TN_BLOCK_KERNEL(softmax_##name, SoftmaxArgs) {      \
    tn::softmax<E>(args);                             \
  }                                                   \
  TN_BLOCK_KERNEL(norm_##name, NormArgs) {            \
    tn::norm<E>(args);                                \
  }                                                   \
  TN_WARP_KERNEL(softmax_warps, name, E, SoftmaxArgs) \
  TN_WARP_KERNEL(norm_warps, name, E, NormArgs)

TN_ROWS(f32, float)
TN_ROWS(f16, tn::F16)
TN_ROWS(bf16, tn::BF16)
