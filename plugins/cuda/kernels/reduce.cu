// SPDX-License-Identifier: Apache-2.0
// Reductions: a block per output where the reduced elements are neighbours, else a thread per
// output, so that in both cases neighbouring threads read neighbouring elements.
#include "block.cuh"
#include "row_args.h"

namespace tn {

TN_FN i64 offset_of(u64 i, unsigned rank, const u64* dims, const i64* strides) {
  i64 offset = 0;
  for (unsigned axis = 0; axis < rank; ++axis) {
    offset += static_cast<i64>(i % dims[axis]) * strides[axis];
    i /= dims[axis];
  }
  return offset;
}

// first: what an element counts as; next: how two are joined; last: what the result is.
struct Plain {
  static TN_FN float first(float x) { return x; }
  static TN_FN float last(float r, float) { return r; }
};
struct OfSum : Plain {
  static TN_FN float neutral() { return 0; }
  TN_FN float operator()(float a, float b) const { return a + b; }
};
struct OfMean : OfSum {
  static TN_FN float last(float r, float n) { return r / n; }
};
struct OfProd : Plain {
  static TN_FN float neutral() { return 1; }
  TN_FN float operator()(float a, float b) const { return a * b; }
};
struct OfMax : Plain {
  static TN_FN float neutral() { return -infinity(); }
  TN_FN float operator()(float a, float b) const { return high(a, b); }
};
struct OfMin : Plain {
  static TN_FN float neutral() { return infinity(); }
  TN_FN float operator()(float a, float b) const { return low(a, b); }
};
struct OfL1 : OfSum {
  static TN_FN float first(float x) { return fabsf(x); }
};
struct OfSumSquare : OfSum {
  static TN_FN float first(float x) { return x * x; }
};
struct OfL2 : OfSumSquare {
  static TN_FN float last(float r, float) { return sqrtf(r); }
};

template <class E, class Of>
TN_FN void reduce_rows(const ReduceArgs& args) {
  const float n = static_cast<float>(args.reduced);
  for (u64 i = blockIdx.x; i < args.outputs; i += gridDim.x) {
    const E* x = static_cast<const E*>(args.x) +
                 offset_of(i, args.kept_rank, args.kept_dims, args.kept_strides);
    float r = Of::neutral();
    for (u64 j = threadIdx.x; j < args.reduced; j += blockDim.x) {
      r = Of()(r,
               Of::first(value(
                   x[offset_of(j, args.reduced_rank, args.reduced_dims, args.reduced_strides)])));
    }
    r = over_block(r, Of(), Of::neutral());
    if (threadIdx.x == 0) static_cast<E*>(args.y)[i] = Convert<E>::from(Of::last(r, n));
  }
}

template <class E, class Of>
TN_FN void reduce_columns(const ReduceArgs& args) {
  const float n = static_cast<float>(args.reduced);
  const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < args.outputs;
       i += step) {
    const E* x = static_cast<const E*>(args.x) +
                 offset_of(i, args.kept_rank, args.kept_dims, args.kept_strides);
    float r = Of::neutral();
    for (u64 j = 0; j < args.reduced; ++j) {
      r = Of()(r,
               Of::first(value(
                   x[offset_of(j, args.reduced_rank, args.reduced_dims, args.reduced_strides)])));
    }
    static_cast<E*>(args.y)[i] = Convert<E>::from(Of::last(r, n));
  }
}

}  // namespace tn

#define TN_REDUCTION(kind, Of, name, E)                      \
  TN_BLOCK_KERNEL(reduce_rows_##kind##_##name, ReduceArgs) { \
    tn::reduce_rows<E, tn::Of>(args);                        \
  }                                                          \
  TN_KERNEL(reduce_columns_##kind##_##name, ReduceArgs) {    \
    tn::reduce_columns<E, tn::Of>(args);                     \
  }

#define TN_REDUCTIONS(kind, Of)        \
  TN_REDUCTION(kind, Of, f32, float)   \
  TN_REDUCTION(kind, Of, f16, tn::F16) \
  TN_REDUCTION(kind, Of, bf16, tn::BF16)

TN_REDUCTIONS(sum, OfSum)
TN_REDUCTIONS(mean, OfMean)
TN_REDUCTIONS(prod, OfProd)
TN_REDUCTIONS(max, OfMax)
TN_REDUCTIONS(min, OfMin)
TN_REDUCTIONS(l1, OfL1)
TN_REDUCTIONS(l2, OfL2)
TN_REDUCTIONS(sum_square, OfSumSquare)
