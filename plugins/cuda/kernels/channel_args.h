/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the kernels that sum over everything but one axis, the channels: statistics of a
 * batch, gradients of scales and biases. Element j of channel c lies at
 * (j / inner * channels + c) * inner + j % inner. */
#ifndef TENON_CUDA_CHANNEL_ARGS_H
#define TENON_CUDA_CHANNEL_ARGS_H

/* Pieces of the sums: partial[piece][c], and behind them those of a second sum. */
struct ChannelSumArgs {
  const void* x;
  const void* dy;
  const float* mean; /* by channel, or by row (element / inner) where the statistics are of rows */
  const float* inv_std;
  float* partial;
  unsigned long long channels, inner, count; /* count: elements of a channel */
  unsigned long long pieces, piece;          /* how many, and of how many elements */
  unsigned lanes; /* threads of a block beside each other along the channels: a power of two */
  unsigned width; /* channels of each: 1, or as many as 16 bytes hold */
};

/* first[c] = factor * sum of the first pieces; second, where there is one, of the second, times
 * inv_std[c] where that is given. */
struct ChannelTotalArgs {
  const float* partial;
  const float* inv_std;
  void* first;
  void* second;
  unsigned long long channels, pieces;
  float factor;
  unsigned reserved;
};

/* From sums of distances and of their squares: mean and 1 / sqrt(variance + epsilon), and running
 * statistics where they are wanted: before * momentum + now * (1 - momentum). */
struct ChannelStatisticsArgs {
  const void* x;
  const float* partial;
  const float* mean_before;
  const float* variance_before;
  float* mean;
  float* inv_std;
  float* mean_after;
  float* variance_after;
  unsigned long long channels, inner, count, pieces;
  float epsilon, momentum;
};

/* Gradient of LayerNormalization by x; writes the statistics of the rows too. */
struct LayerNormGradArgs {
  const void* dy;
  const void* x;
  const void* scale;
  void* dx;
  float* mean;
  float* inv_std;
  unsigned long long rows, cols;
  float epsilon;
  unsigned reserved;
};

#endif
