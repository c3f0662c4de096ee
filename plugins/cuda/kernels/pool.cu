// SPDX-License-Identifier: Apache-2.0
// Maximum and average over windows, one thread per output, and their gradients, one thread per
// input: it looks through the windows that hold it, so nothing is added from two sides at once. Of
// a maximum, each window's tap is found first.
#include "element.cuh"
#include "row_args.h"

namespace tn {

// Element i of an image of these sizes in memory, as coordinates.
struct Place {
  u64 image, channel;  // with channels first: which plane of one channel, and 0
  u64 plane;           // where its channel of its image begins
  i64 apart;           // elements between neighbours in a row
  int row, column;
};

template <class Index>
TN_FN Place place_by(const PoolArgs& args, Index i, Index h, Index w) {
  Place at;
  const u64 size = static_cast<u64>(args.h) * static_cast<u64>(args.w);
  const Index c = args.channels_last ? static_cast<Index>(args.channels) : 1;
  const Index rest = i / c, line = rest / w, image = line / h;
  at.column = static_cast<int>(rest - line * w);
  at.row = static_cast<int>(line - image * h);
  at.image = image;
  at.channel = i - rest * c;
  at.plane = image * c * size + at.channel;
  at.apart = static_cast<i64>(c);
  return at;
}

// Divisions of 32 bits cost a third.
TN_FN Place place_of(const PoolArgs& args, u64 i, int height, int width) {
  if (i >> 32 == 0) {
    return place_by<unsigned>(args, static_cast<unsigned>(i), static_cast<unsigned>(height),
                              static_cast<unsigned>(width));
  }
  return place_by<u64>(args, i, static_cast<u64>(height), static_cast<u64>(width));
}

TN_FN i64 offset(const PoolArgs& args, const Place& at, int row, int column) {
  return (static_cast<i64>(row) * args.w + column) * at.apart;
}

// How many steps of an average's window lie within the padded image.
TN_FN int padded_steps(const PoolArgs& args, int axis, int start, int extent) {
  int steps = 0;
  for (int k = 0; k < args.kernel[axis]; ++k) {
    int at = start + k * args.dilation[axis];
    steps += at >= -args.pad[axis] && at < extent + args.end_pad[axis];
  }
  return steps;
}

// visit(row, column) for what lies within the image of the window that begins at top, left.
template <class Visit>
TN_FN void for_each_tap(const PoolArgs& args, int top, int left, const Visit& visit) {
  for (int a = 0; a < args.kernel[0]; ++a) {
    int y = top + a * args.dilation[0];
    if (y < 0 || y >= args.h) continue;
    for (int b = 0; b < args.kernel[1]; ++b) {
      int z = left + b * args.dilation[1];
      if (z >= 0 && z < args.w) visit(y, z);
    }
  }
}

TN_FN int taps(const PoolArgs& args, int top, int left) {
  if (args.counts_padding)
    return padded_steps(args, 0, top, args.h) * padded_steps(args, 1, left, args.w);
  int n = 0;
  for_each_tap(args, top, left, [&](int, int) { ++n; });
  return n;
}

template <class E>
TN_FN void pool(const PoolArgs& args) {
  const u64 count =
      args.images * args.channels * static_cast<u64>(args.p) * static_cast<u64>(args.q);
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Place at = place_of(args, i, args.p, args.q);
    const E* x = static_cast<const E*>(args.x) + at.plane;
    int top = at.row * args.stride[0] - args.pad[0];
    int left = at.column * args.stride[1] - args.pad[1];
    float r = args.is_average ? 0 : -infinity();
    for_each_tap(args, top, left, [&](int y, int z) {
      float v = value(x[offset(args, at, y, z)]);
      r = args.is_average ? r + v : high(r, v);
    });
    if (args.is_average) r /= static_cast<float>(taps(args, top, left));
    static_cast<E*>(args.y)[i] = Convert<E>::from(r);
  }
}

// For each output, which place of its image the largest of its window is: the first of several; a
// NaN is larger than anything. -1: all of it lies in the padding.
template <class E>
TN_FN void pool_places(const PoolArgs& args) {
  const u64 count =
      args.images * args.channels * static_cast<u64>(args.p) * static_cast<u64>(args.q);
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Place at = place_of(args, i, args.p, args.q);
    const E* x = static_cast<const E*>(args.x) + at.plane;
    int best = -1;
    float most = 0;
    for_each_tap(args, at.row * args.stride[0] - args.pad[0],
                 at.column * args.stride[1] - args.pad[1], [&](int y, int z) {
                   float v = value(x[offset(args, at, y, z)]);
                   if (best >= 0 && !(v > most || (v != v && most == most))) return;
                   most = v;
                   best = y * args.w + z;
                 });
    args.places[i] = best;
  }
}

// The first window that may hold position `at`, and the one behind the last.
TN_FN int first_window(const PoolArgs& args, int axis, int at) {
  int reach = (args.kernel[axis] - 1) * args.dilation[axis];
  int from = at + args.pad[axis] - reach;
  return from <= 0 ? 0 : (from + args.stride[axis] - 1) / args.stride[axis];
}
TN_FN int last_window(const PoolArgs& args, int axis, int at, int windows) {
  int past = (at + args.pad[axis]) / args.stride[axis] + 1;
  return past < windows ? past : windows;
}
TN_FN bool holds(const PoolArgs& args, int axis, int start, int at) {
  return (at - start) % args.dilation[axis] == 0;
}

template <class E, bool kAverage>
TN_FN void pool_grad(const PoolArgs& args) {
  const u64 count =
      args.images * args.channels * static_cast<u64>(args.h) * static_cast<u64>(args.w);
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  const u64 outputs = static_cast<u64>(args.p) * static_cast<u64>(args.q);
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Place at = place_of(args, i, args.h, args.w);
    // dy has as many planes as x, of another size.
    const u64 plane = at.image * static_cast<u64>(at.apart) * outputs + at.channel;
    const E* dy = static_cast<const E*>(args.dy) + plane;
    const int* places = args.places + plane;
    const int own = at.row * args.w + at.column;
    float sum = 0;
    for (int p = first_window(args, 0, at.row), n = last_window(args, 0, at.row, args.p); p < n;
         ++p) {
      int top = p * args.stride[0] - args.pad[0];
      if (!holds(args, 0, top, at.row)) continue;
      for (int q = first_window(args, 1, at.column), m = last_window(args, 1, at.column, args.q);
           q < m; ++q) {
        int left = q * args.stride[1] - args.pad[1];
        if (!holds(args, 1, left, at.column)) continue;
        const i64 window = (static_cast<i64>(p) * args.q + q) * at.apart;
        if (kAverage) {
          sum += value(dy[window]) / static_cast<float>(taps(args, top, left));
        } else if (places[window] == own) {
          sum += value(dy[window]);
        }
      }
    }
    static_cast<E*>(args.y)[i] = Convert<E>::from(sum);
  }
}

}  // namespace tn

#define TN_POOLS(name, E)                         \
  TN_KERNEL(pool_##name, PoolArgs) {              \
    tn::pool<E>(args);                            \
  }                                               \
  TN_KERNEL(pool_places_##name, PoolArgs) {       \
    tn::pool_places<E>(args);                     \
  }                                               \
  TN_KERNEL(pool_grad_max_##name, PoolArgs) {     \
    tn::pool_grad<E, false>(args);                \
  }                                               \
  TN_KERNEL(pool_grad_average_##name, PoolArgs) { \
    tn::pool_grad<E, true>(args);                 \
  }

TN_POOLS(f32, float)
TN_POOLS(f16, tn::F16)
TN_POOLS(bf16, tn::BF16)
