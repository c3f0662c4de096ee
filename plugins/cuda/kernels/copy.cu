// SPDX-License-Identifier: Apache-2.0
// Strided copies and gathers, by the size of an element: what the numbers mean does not matter.
#include "copy_args.h"
#include "element.cuh"

namespace tn {

struct alignas(16) Block16 {
  u64 words[2];
};

template <class E, class Index>
TN_FN void copy_by(const CopyArgs& args) {
  const E* from = static_cast<const E*>(args.from);
  E* to = static_cast<E*>(args.to);
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count; i += step) {
    Index rest = static_cast<Index>(i);
    i64 source = 0, target = 0;
    for (unsigned axis = 0; axis < args.rank; ++axis) {
      const Index dim = static_cast<Index>(args.dims[axis]);
      const Index over = axis + 1 < args.rank ? rest / dim : 0, at = rest - over * dim;
      rest = over;
      source += static_cast<i64>(at) * args.from_strides[axis];
      target += static_cast<i64>(at) * args.to_strides[axis];
    }
    to[target] = from[source];
  }
}

// Divisions of 32 bits cost a third.
template <class E>
TN_FN void copy(const CopyArgs& args) {
  if (args.count >> 32 == 0) {
    copy_by<E, unsigned>(args);
  } else {
    copy_by<E, u64>(args);
  }
}

TN_FN i64 number_at(const void* from, unsigned bytes, u64 i) {
  return bytes == 8 ? static_cast<const i64*>(from)[i] : static_cast<const int*>(from)[i];
}

// An index outside the axis is reported to the host and reads as zero.
template <class E>
TN_FN void gather(const GatherArgs& args) {
  const E* from = static_cast<const E*>(args.from);
  E* to = static_cast<E*>(args.to);
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  const u64 count = args.outer * args.n_indices * args.inner;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    u64 in = i % args.inner, which = i / args.inner % args.n_indices;
    u64 out = i / args.inner / args.n_indices;
    i64 index = number_at(args.indices, args.index_bytes, which);
    if (index < 0) index += static_cast<i64>(args.extent);
    if (index < 0 || index >= static_cast<i64>(args.extent)) {
      *args.fault = args.fault_number;
      to[i] = E{};
      continue;
    }
    to[i] = from[(out * args.extent + static_cast<u64>(index)) * args.inner + in];
  }
}

// put(where, what) for each element of the updates; an index outside its axis is reported to the
// host and its slice left out.
template <class E, class Put>
TN_FN void scatter(const ScatterArgs& args, const Put& put) {
  const E* from = static_cast<const E*>(args.from);
  E* to = static_cast<E*>(args.to);
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x, count = args.n_indices * args.inner;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const u64 which = i / args.inner;
    u64 slice = 0;
    bool is_inside = true;
    for (unsigned axis = 0; axis < args.depth; ++axis) {
      i64 index = number_at(args.indices, args.index_bytes, which * args.depth + axis);
      const i64 extent = static_cast<i64>(args.extents[axis]);
      if (index < 0) index += extent;
      is_inside = is_inside && index >= 0 && index < extent;
      slice += static_cast<u64>(index) * args.strides[axis];
    }
    if (is_inside) {
      put(to + slice * args.inner + i % args.inner, from[i]);
    } else {
      *args.fault = args.fault_number;
    }
  }
}

}  // namespace tn

#define TN_MOVERS(bytes, E)                                         \
  TN_KERNEL(copy_##bytes, CopyArgs) {                               \
    tn::copy<E>(args);                                              \
  }                                                                 \
  TN_KERNEL(gather_##bytes, GatherArgs) {                           \
    tn::gather<E>(args);                                            \
  }                                                                 \
  TN_KERNEL(scatter_##bytes, ScatterArgs) {                         \
    tn::scatter<E>(args, [](E* to, const E& from) { *to = from; }); \
  }

TN_MOVERS(1, unsigned char)
TN_MOVERS(2, unsigned short)
TN_MOVERS(4, unsigned)
TN_MOVERS(8, tn::u64)
TN_MOVERS(16, tn::Block16)

// Several updates of one place are added one after the other, in no certain order.
TN_KERNEL(scatter_add_f32, ScatterArgs) {
  tn::scatter<float>(args, [](float* to, float from) { atomicAdd(to, from); });
}
