// SPDX-License-Identifier: Apache-2.0
// Maximum and average over windows, NCHW: one thread per output.
#include "element.cuh"
#include "row_args.h"

namespace tn {

// How many steps of an average's window lie within the padded image.
TN_FN int padded_steps(const PoolArgs& args, int axis, int start, int extent) {
  int steps = 0;
  for (int k = 0; k < args.kernel[axis]; ++k) {
    int at = start + k * args.dilation[axis];
    steps += at >= -args.pad[axis] && at < extent + args.end_pad[axis];
  }
  return steps;
}

template <class E>
TN_FN void pool(const PoolArgs& args) {
  const u64 count = args.planes * static_cast<u64>(args.p) * static_cast<u64>(args.q);
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    int column = static_cast<int>(i % static_cast<u64>(args.q));
    int row = static_cast<int>(i / static_cast<u64>(args.q) % static_cast<u64>(args.p));
    u64 plane = i / static_cast<u64>(args.q) / static_cast<u64>(args.p);
    const E* x = static_cast<const E*>(args.x) + plane * static_cast<u64>(args.h) * args.w;
    int top = row * args.stride[0] - args.pad[0], left = column * args.stride[1] - args.pad[1];
    float r = args.is_average ? 0 : -infinity();
    int n = 0;
    for (int a = 0; a < args.kernel[0]; ++a) {
      int y = top + a * args.dilation[0];
      if (y < 0 || y >= args.h) continue;
      for (int b = 0; b < args.kernel[1]; ++b) {
        int z = left + b * args.dilation[1];
        if (z < 0 || z >= args.w) continue;
        float v = value(x[static_cast<i64>(y) * args.w + z]);
        r = args.is_average ? r + v : high(r, v);
        ++n;
      }
    }
    if (args.is_average) {
      if (args.counts_padding)
        n = padded_steps(args, 0, top, args.h) * padded_steps(args, 1, left, args.w);
      r /= static_cast<float>(n);
    }
    static_cast<E*>(args.y)[i] = Convert<E>::from(r);
  }
}

}  // namespace tn

TN_KERNEL(pool_f32, PoolArgs) {
  tn::pool<float>(args);
}
TN_KERNEL(pool_f16, PoolArgs) {
  tn::pool<tn::F16>(args);
}
TN_KERNEL(pool_bf16, PoolArgs) {
  tn::pool<tn::BF16>(args);
}
