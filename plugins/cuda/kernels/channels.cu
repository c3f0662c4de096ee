// SPDX-License-Identifier: Apache-2.0
// Sums over everything but the channels, in two steps: pieces by blocks, then their totals. So all
// of the device works on few channels, and the order of additions is always the same.
#include "block.cuh"
#include "channel_args.h"

namespace tn {

constexpr unsigned kThreads = 256;

struct Sums {
  float first, second;
};

// What element i of x, of channel c and row r, adds.
template <class E>
struct OfValues {
  static TN_FN void add(const ChannelSumArgs& args, u64 i, u64, u64, Sums& to) {
    to.first += value(static_cast<const E*>(args.x)[i]);
  }
};
template <class E>
struct OfSquares {
  static TN_FN void add(const ChannelSumArgs& args, u64 i, u64 c, u64, Sums& to) {
    float off = value(static_cast<const E*>(args.x)[i]) - args.mean[c];
    to.first += off * off;
  }
};
template <class E, bool kOfRows>
struct OfGradients {
  static TN_FN void add(const ChannelSumArgs& args, u64 i, u64 c, u64 r, Sums& to) {
    const u64 at = kOfRows ? r : c;
    float dy = value(static_cast<const E*>(args.dy)[i]);
    float off = value(static_cast<const E*>(args.x)[i]) - args.mean[at];
    to.first += dy;
    to.second += dy * (off * args.inv_std[at]);
  }
};

// A block takes `lanes` neighbouring channels; its other threads share their elements.
template <class Of>
TN_FN void channel_sums(const ChannelSumArgs& args) {
  __shared__ Sums shared[kThreads];
  const unsigned lane = threadIdx.x % args.lanes, row = threadIdx.x / args.lanes;
  const unsigned rows = blockDim.x / args.lanes;
  const u64 tiles = (args.channels + args.lanes - 1) / args.lanes;
  for (u64 work = blockIdx.x; work < tiles * args.pieces; work += gridDim.x) {
    const u64 c = work % tiles * args.lanes + lane, piece = work / tiles;
    const u64 begin = piece * args.piece, past = begin + args.piece;
    const u64 end = past < args.count ? past : args.count;
    Sums sums = {0, 0};
    for (u64 j = begin + row; c < args.channels && j < end; j += rows) {
      const u64 r = args.inner == 1 ? j : j / args.inner;
      Of::add(args, (r * args.channels + c) * args.inner + (j - r * args.inner), c, r, sums);
    }
    __syncthreads();  // those of the turn before have been read
    shared[threadIdx.x] = sums;
    __syncthreads();
    for (unsigned half = rows / 2; half > 0; half /= 2) {
      if (row < half) {
        shared[threadIdx.x].first += shared[threadIdx.x + half * args.lanes].first;
        shared[threadIdx.x].second += shared[threadIdx.x + half * args.lanes].second;
      }
      __syncthreads();
    }
    if (row == 0 && c < args.channels) {
      args.partial[piece * args.channels + c] = shared[lane].first;
      args.partial[(args.pieces + piece) * args.channels + c] = shared[lane].second;
    }
  }
}

TN_FN float total_of(const float* partial, u64 channels, u64 pieces, u64 c) {
  float sum = 0;
  for (u64 piece = 0; piece < pieces; ++piece)
    sum += partial[piece * channels + c];
  return sum;
}

template <class E>
TN_FN void channel_totals(const ChannelTotalArgs& args) {
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 c = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; c < args.channels;
       c += step) {
    float first = total_of(args.partial, args.channels, args.pieces, c);
    static_cast<E*>(args.first)[c] = Convert<E>::from(first * args.factor);
    if (!args.second) continue;
    float second =
        total_of(args.partial + args.pieces * args.channels, args.channels, args.pieces, c);
    static_cast<E*>(args.second)[c] = Convert<E>::from(second * args.factor);
  }
}

TN_FN void channel_spread(const ChannelSpreadArgs& args) {
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 c = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; c < args.channels;
       c += step) {
    float variance = total_of(args.partial, args.channels, args.pieces, c) * args.factor;
    args.inv_std[c] = 1 / sqrtf(variance + args.epsilon);
    const float keep = args.momentum, take = 1 - keep;
    if (args.mean_after) args.mean_after[c] = args.mean_before[c] * keep + args.mean[c] * take;
    if (args.variance_after)
      args.variance_after[c] = args.variance_before[c] * keep + variance * take;
  }
}

template <class E, int N>
TN_FN void batch_norm(const BatchNormArgs& args) {
  const E* x = static_cast<const E*>(args.x);
  const E* dy = static_cast<const E*>(args.dy);
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x, count = args.count / N;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Vector<E, N> from = load<N>(x + i * N);
    Vector<E, N> back, out;
    if (dy) back = load<N>(dy + i * N);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const unsigned at = static_cast<unsigned>(i * N) + static_cast<unsigned>(k);
      const unsigned c = at / args.inner % args.channels;
      const float normal = (value(from.at[k]) - args.mean[c]) * args.inv_std[c];
      float r = normal * args.scale[c];
      if (dy) {
        float d = value(back.at[k]) - (args.dbias[c] + normal * args.dscale[c]) * args.factor;
        r = d * args.scale[c] * args.inv_std[c];
      } else {
        r += args.bias[c];
      }
      out.at[k] = Convert<E>::from(r);
    }
    store(static_cast<E*>(args.y) + i * N, out);
  }
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

}  // namespace tn

#define TN_CHANNELS(name, E)                                      \
  TN_BLOCK_KERNEL(channel_values_##name, ChannelSumArgs) {        \
    tn::channel_sums<tn::OfValues<E>>(args);                      \
  }                                                               \
  TN_BLOCK_KERNEL(channel_squares_##name, ChannelSumArgs) {       \
    tn::channel_sums<tn::OfSquares<E>>(args);                     \
  }                                                               \
  TN_BLOCK_KERNEL(channel_gradients_##name, ChannelSumArgs) {     \
    tn::channel_sums<tn::OfGradients<E, false>>(args);            \
  }                                                               \
  TN_BLOCK_KERNEL(channel_row_gradients_##name, ChannelSumArgs) { \
    tn::channel_sums<tn::OfGradients<E, true>>(args);             \
  }                                                               \
  TN_KERNEL(channel_totals_##name, ChannelTotalArgs) {            \
    tn::channel_totals<E>(args);                                  \
  }                                                               \
  TN_KERNEL(batch_norm_##name, BatchNormArgs) {                   \
    tn::batch_norm<E, 1>(args);                                   \
  }                                                               \
  TN_KERNEL(batch_norm_vectors_##name, BatchNormArgs) {           \
    tn::batch_norm<E, 4>(args);                                   \
  }                                                               \
  TN_BLOCK_KERNEL(layer_norm_grad_##name, LayerNormGradArgs) {    \
    tn::layer_norm_grad<E>(args);                                 \
  }

TN_CHANNELS(f32, float)
TN_CHANNELS(f16, tn::F16)
TN_CHANNELS(bf16, tn::BF16)

TN_KERNEL(channel_spread, ChannelSpreadArgs) {
  tn::channel_spread(args);
}
