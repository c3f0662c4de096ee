// SPDX-License-Identifier: Apache-2.0
// Sums over everything but the channels, in two steps: pieces by blocks, then their totals. So all
// of the device works on few channels, and the order of additions is always the same.
#include "channel_args.h"
#include "warp_row.cuh"

namespace tn {

struct Sums {
  float first, second;
};
TN_FN Sums operator+(const Sums& a, const Sums& b) {
  return {a.first + b.first, a.second + b.second};
}

// Near the mean of a channel, so that squares of distances from it lose no digits: the mean of four
// of its elements.
template <class E>
TN_FN float shift_of(const void* x, u64 channels, u64 inner, u64 count, u64 c) {
  float sum = 0;
#pragma unroll
  for (u64 part = 0; part < 4; ++part) {
    const u64 j = part * (count / 4), r = inner == 1 ? j : j / inner;
    sum += value(static_cast<const E*>(x)[(r * channels + c) * inner + (j - r * inner)]);
  }
  return sum * 0.25f;
}

// What element i of x, of channel c and row r, adds. `about`: a number of the channel.
template <class E>
struct OfValues {
  static constexpr bool kHasGradient = false;
  static TN_FN float about(const ChannelSumArgs&, u64) { return 0; }
  static TN_FN void add(const ChannelSumArgs&, float, u64, float x, float, Sums& to) {
    to.first += x;
  }
};
template <class E>
struct OfDistances {
  static constexpr bool kHasGradient = false;
  static TN_FN float about(const ChannelSumArgs& args, u64 c) {
    return shift_of<E>(args.x, args.channels, args.inner, args.count, c);
  }
  static TN_FN void add(const ChannelSumArgs&, float shift, u64, float x, float, Sums& to) {
    const float off = x - shift;
    to.first += off;
    to.second += off * off;
  }
};
template <class E>
struct OfGradients {
  static constexpr bool kHasGradient = true;
  static TN_FN float about(const ChannelSumArgs& args, u64 c) { return args.mean[c]; }
  static TN_FN void add(const ChannelSumArgs&, float mean, u64, float x, float dy, Sums& to) {
    to.first += dy;
    to.second += dy * (x - mean);  // the totals are multiplied by inv_std
  }
};
template <class E>
struct OfRowGradients {
  static constexpr bool kHasGradient = true;
  static TN_FN float about(const ChannelSumArgs&, u64) { return 0; }
  static TN_FN void add(const ChannelSumArgs& args, float, u64 r, float x, float dy, Sums& to) {
    to.first += dy;
    to.second += dy * ((x - args.mean[r]) * args.inv_std[r]);
  }
};

// A block takes `lanes` times N neighbouring channels; its other threads share their elements.
template <class Of, class E, int N>
TN_FN void channel_sums_of(const ChannelSumArgs& args) {
  __shared__ Sums shared[256 * N];
  const unsigned lane = threadIdx.x % args.lanes, row = threadIdx.x / args.lanes;
  const unsigned rows = blockDim.x / args.lanes;
  const u64 width = static_cast<u64>(args.lanes) * N;
  const u64 tiles = (args.channels + width - 1) / width;
  for (u64 work = blockIdx.x; work < tiles * args.pieces; work += gridDim.x) {
    const u64 c = work % tiles * width + lane * N, piece = work / tiles;
    const u64 begin = piece * args.piece, past = begin + args.piece;
    const u64 end = c >= args.channels ? 0 : past < args.count ? past : args.count;
    Sums sums[N];
    float about[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      sums[k] = {0, 0};
      about[k] = end ? Of::about(args, c + static_cast<u64>(k)) : 0;
    }
#pragma unroll 4
    for (u64 j = begin + row; j < end; j += rows) {
      const u64 r = args.inner == 1 ? j : j / args.inner;
      const u64 i = (r * args.channels + c) * args.inner + (j - r * args.inner);
      const Vector<E, N> x = load<N>(static_cast<const E*>(args.x) + i);
      Vector<E, N> dy = x;
      if (Of::kHasGradient) dy = load<N>(static_cast<const E*>(args.dy) + i);
#pragma unroll
      for (int k = 0; k < N; ++k)
        Of::add(args, about[k], r, value(x.at[k]), value(dy.at[k]), sums[k]);
    }
    __syncthreads();  // those of the turn before have been read
#pragma unroll
    for (int k = 0; k < N; ++k)
      shared[threadIdx.x * N + k] = sums[k];
    __syncthreads();
    for (unsigned half = rows / 2; half > 0; half /= 2) {
      const unsigned other = threadIdx.x + half * args.lanes;
#pragma unroll
      for (int k = 0; row < half && k < N; ++k)
        shared[threadIdx.x * N + k] = shared[threadIdx.x * N + k] + shared[other * N + k];
      __syncthreads();
    }
    for (int k = 0; row == 0 && end && k < N; ++k) {
      args.partial[piece * args.channels + c + k] = shared[lane * N + k].first;
      args.partial[(args.pieces + piece) * args.channels + c + k] = shared[lane * N + k].second;
    }
  }
}

template <template <class> class Of, class E>
TN_FN void channel_sums(const ChannelSumArgs& args) {
  if (args.width == 1) {
    channel_sums_of<Of<E>, E, 1>(args);
  } else {
    channel_sums_of<Of<E>, E, 16 / sizeof(E)>(args);
  }
}

// finish(channel, its sums): a block adds the pieces of 32 channels.
template <class Finish>
TN_FN void for_each_total(const float* partial, u64 channels, u64 pieces, const Finish& finish) {
  __shared__ Sums shared[1024];
  const unsigned lane = threadIdx.x % 32, row = threadIdx.x / 32, rows = blockDim.x / 32;
  for (u64 first = static_cast<u64>(blockIdx.x) * 32; first < channels;
       first += static_cast<u64>(gridDim.x) * 32) {
    const u64 c = first + lane;
    Sums sums = {0, 0};
#pragma unroll 4
    for (u64 piece = row; c < channels && piece < pieces; piece += rows)
      sums = sums + Sums{partial[piece * channels + c], partial[(pieces + piece) * channels + c]};
    __syncthreads();  // those of the turn before have been read
    shared[threadIdx.x] = sums;
    __syncthreads();
    for (unsigned half = rows / 2; half > 0; half /= 2) {
      if (row < half) shared[threadIdx.x] = shared[threadIdx.x] + shared[threadIdx.x + half * 32];
      __syncthreads();
    }
    if (row == 0 && c < channels) finish(c, shared[lane]);
  }
}

template <class E>
TN_FN void channel_totals(const ChannelTotalArgs& args) {
  for_each_total(args.partial, args.channels, args.pieces, [&](u64 c, const Sums& sums) {
    static_cast<E*>(args.first)[c] = Convert<E>::from(sums.first * args.factor);
    if (!args.second) return;
    const float by = args.inv_std ? args.inv_std[c] : 1;
    static_cast<E*>(args.second)[c] = Convert<E>::from(sums.second * by * args.factor);
  });
}

template <class E>
TN_FN void channel_statistics(const ChannelStatisticsArgs& args) {
  const float each = 1 / static_cast<float>(args.count);
  for_each_total(args.partial, args.channels, args.pieces, [&](u64 c, const Sums& sums) {
    const float off = sums.first * each;
    const float mean = shift_of<E>(args.x, args.channels, args.inner, args.count, c) + off;
    const float spread = sums.second * each - off * off;
    const float variance = spread < 0 ? 0 : spread;
    args.mean[c] = mean;
    args.inv_std[c] = 1 / sqrtf(variance + args.epsilon);
    const float keep = args.momentum, take = 1 - keep;
    if (args.mean_after) args.mean_after[c] = args.mean_before[c] * keep + mean * take;
    if (args.variance_after)
      args.variance_after[c] = args.variance_before[c] * keep + variance * take;
  });
}

template <class E>
TN_FN void layer_norm_grad(const LayerNormGradArgs& args) {
  const E* scale = static_cast<const E*>(args.scale);
  const float n = static_cast<float>(args.cols);
  for (u64 row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const E* x = static_cast<const E*>(args.x) + row * args.cols;
    const E* dy = static_cast<const E*>(args.dy) + row * args.cols;
    E* dx = static_cast<E*>(args.dx) + row * args.cols;
    float mean = 0, squares = 0, inner = 0, along = 0;
    for (u64 j = threadIdx.x; j < args.cols; j += blockDim.x)
      mean += value(x[j]);
    mean = over_block(mean, Sum(), 0.0f) / n;
    for (u64 j = threadIdx.x; j < args.cols; j += blockDim.x) {
      float off = value(x[j]) - mean;
      squares += off * off;
    }
    const float inv_std = 1 / sqrtf(over_block(squares, Sum(), 0.0f) / n + args.epsilon);
    for (u64 j = threadIdx.x; j < args.cols; j += blockDim.x) {
      float scaled = value(dy[j]) * value(scale[j]);
      inner += scaled;
      along += scaled * ((value(x[j]) - mean) * inv_std);
    }
    inner = over_block(inner, Sum(), 0.0f) / n;
    along = over_block(along, Sum(), 0.0f) / n;
    for (u64 j = threadIdx.x; j < args.cols; j += blockDim.x) {
      float normal = (value(x[j]) - mean) * inv_std;
      float r = (value(dy[j]) * value(scale[j]) - inner - normal * along) * inv_std;
      dx[j] = Convert<E>::from(r);
    }
    if (threadIdx.x == 0) {
      args.mean[row] = mean;
      args.inv_std[row] = inv_std;
    }
  }
}

template <class E, int N, int K>
TN_FN void layer_norm_grad_warps(const LayerNormGradArgs& args) {
  const E* scale = static_cast<const E*>(args.scale);
  const float n = static_cast<float>(args.cols);
  for_each_warp_row(args.rows, [&](u64 row, bool is_row) {
    WarpRow<E, N, K> x, d;
    x.load(static_cast<const E*>(args.x) + row * args.cols, args.cols, 0);
    d.load(static_cast<const E*>(args.dy) + row * args.cols, args.cols, 0);
    float mean = 0, squares = 0, inner = 0, along = 0;
    x.each([&](float& v, u64) { mean += v; });
    mean = over_warp(mean, Sum()) / n;
    x.each([&](float& v, u64 j) {
      v -= mean;
      if (j < args.cols) squares += v * v;
    });
    const float inv_std = 1 / sqrtf(over_warp(squares, Sum()) / n + args.epsilon);
    d.each_with(x, [&](float& v, float off, u64 j) {
      if (j >= args.cols) return;
      v *= value(scale[j]);
      inner += v;
      along += v * (off * inv_std);
    });
    inner = over_warp(inner, Sum()) / n;
    along = over_warp(along, Sum()) / n;
    d.each_with(
        x, [&](float& v, float off, u64) { v = (v - inner - off * inv_std * along) * inv_std; });
    if (!is_row) return;
    d.store(static_cast<E*>(args.dx) + row * args.cols, args.cols);
    if (threadIdx.x % 32 == 0) {
      args.mean[row] = mean;
      args.inv_std[row] = inv_std;
    }
  });
}

}  // namespace tn

#define TN_CHANNELS(name, E)                                          \
  TN_BLOCK_KERNEL(channel_values_##name, ChannelSumArgs) {            \
    tn::channel_sums<tn::OfValues, E>(args);                          \
  }                                                                   \
  TN_BLOCK_KERNEL(channel_distances_##name, ChannelSumArgs) {         \
    tn::channel_sums<tn::OfDistances, E>(args);                       \
  }                                                                   \
  TN_BLOCK_KERNEL(channel_gradients_##name, ChannelSumArgs) {         \
    tn::channel_sums<tn::OfGradients, E>(args);                       \
  }                                                                   \
  TN_BLOCK_KERNEL(channel_row_gradients_##name, ChannelSumArgs) {     \
    tn::channel_sums<tn::OfRowGradients, E>(args);                    \
  }                                                                   \
  TN_BLOCK_KERNEL(channel_totals_##name, ChannelTotalArgs) {          \
    tn::channel_totals<E>(args);                                      \
  }                                                                   \
  TN_BLOCK_KERNEL(channel_statistics_##name, ChannelStatisticsArgs) { \
    tn::channel_statistics<E>(args);                                  \
  }                                                                   \
  TN_BLOCK_KERNEL(layer_norm_grad_##name, LayerNormGradArgs) {        \
    tn::layer_norm_grad<E>(args);                                     \
  }                                                                   \
  TN_WARP_KERNEL(layer_norm_grad_warps, name, E, LayerNormGradArgs)

TN_CHANNELS(f32, float)
TN_CHANNELS(f16, tn::F16)
TN_CHANNELS(bf16, tn::BF16)
