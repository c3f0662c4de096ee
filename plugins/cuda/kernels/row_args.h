/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the kernels that work on rows: softmax, normalization, reductions, pooling. */
#ifndef TENON_CUDA_ROW_ARGS_H
#define TENON_CUDA_ROW_ARGS_H

#define TN_REDUCE_RANK 6

/* Row r lies at (r / inner) * cols * inner + r % inner, its elements `inner` apart. */
struct SoftmaxArgs {
  const void* x;
  void* y;
  unsigned long long rows, cols, inner;
  unsigned is_log;
  unsigned reserved;
};

/* scale and bias may be null. mean and inv_std (float, one per row) may be null. */
struct NormArgs {
  const void* x;
  const void* scale;
  const void* bias;
  void* y;
  float* mean;
  float* inv_std;
  unsigned long long rows, cols;
  float epsilon;
  unsigned is_rms; /* no mean is taken away */
};

/* Innermost axis first. Output i sums x[kept offset of i + reduced offset of j] over j. In pieces:
 * partial[output][piece] between the two kernels. */
struct ReduceArgs {
  const void* x;
  void* y;
  float* partial;
  unsigned long long outputs, reduced;
  unsigned long long pieces, piece; /* of an output: how many, and of how many elements */
  unsigned kept_rank, reduced_rank;
  unsigned long long kept_dims[TN_REDUCE_RANK], reduced_dims[TN_REDUCE_RANK];
  long long kept_strides[TN_REDUCE_RANK], reduced_strides[TN_REDUCE_RANK];
};

/* Two spatial axes; one-dimensional data has a first axis of 1. x is what the window goes over, y
 * what a kernel writes: the pool's output, or for a gradient (from dy, of the pool's output) that
 * by x. places: for the gradient of a maximum, which place of its image the largest of each window
 * is. All tensors lie alike. */
struct PoolArgs {
  const void* x;
  const void* dy;
  int* places;
  void* y;
  unsigned long long images, channels;
  int h, w, p, q;
  int kernel[2], stride[2], pad[2], dilation[2];
  int end_pad[2];
  unsigned is_average, counts_padding;
  unsigned channels_last, reserved;
};

#endif
