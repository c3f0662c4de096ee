// SPDX-License-Identifier: Apache-2.0
// Reductions: a block per output where the reduced elements are neighbours, else a thread per
// output, so that in both cases neighbouring threads read neighbouring elements. A warp per output
// where few are reduced; blocks for pieces of one and then one for their results where many are.
#include "block.cuh"
#include "row_args.h"

namespace tn {

TN_FN i64 offset_of(u64 i, unsigned rank, const u64* dims, const i64* strides) {
  if (rank == 1) return static_cast<i64>(i) * strides[0];
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

// Of `count` neighbours, those that are this thread's of `threads`: by vectors where they begin at
// one.
template <class E, class Of>
TN_FN float of_neighbours(const E* x, u64 count, unsigned thread, unsigned threads) {
  constexpr int N = 16 / sizeof(E);
  float r = Of::neutral();
  const u64 vectors = reinterpret_cast<u64>(x) % 16 == 0 ? count / N : 0;
#pragma unroll 4
  for (u64 i = thread; i < vectors; i += threads) {
    const Vector<E, N> from = load<N>(x + i * N);
#pragma unroll
    for (int k = 0; k < N; ++k)
      r = Of()(r, Of::first(value(from.at[k])));
  }
  for (u64 i = vectors * N + thread; i < count; i += threads)
    r = Of()(r, Of::first(value(x[i])));
  return r;
}

TN_FN bool are_neighbours(const ReduceArgs& args) {
  return args.reduced_rank == 1 && args.reduced_strides[0] == 1;
}

template <class E>
TN_FN const E* row_of(const ReduceArgs& args, u64 i) {
  return static_cast<const E*>(args.x) +
         offset_of(i, args.kept_rank, args.kept_dims, args.kept_strides);
}

template <class E, class Of>
TN_FN void reduce_rows(const ReduceArgs& args) {
  const float n = static_cast<float>(args.reduced);
  for (u64 i = blockIdx.x; i < args.outputs; i += gridDim.x) {
    const E* x = row_of<E>(args, i);
    float r = Of::neutral();
    if (are_neighbours(args)) {
      r = of_neighbours<E, Of>(x, args.reduced, threadIdx.x, blockDim.x);
    } else {
      for (u64 j = threadIdx.x; j < args.reduced; j += blockDim.x)
        r = Of()(r,
                 Of::first(value(
                     x[offset_of(j, args.reduced_rank, args.reduced_dims, args.reduced_strides)])));
    }
    r = over_block(r, Of(), Of::neutral());
    if (threadIdx.x == 0) static_cast<E*>(args.y)[i] = Convert<E>::from(Of::last(r, n));
  }
}

// Of neighbours.
template <class E, class Of>
TN_FN void reduce_warps(const ReduceArgs& args) {
  const float n = static_cast<float>(args.reduced);
  const unsigned warps = blockDim.x / 32;
  for (u64 first = static_cast<u64>(blockIdx.x) * warps; first < args.outputs;
       first += static_cast<u64>(gridDim.x) * warps) {
    const u64 i = first + threadIdx.x / 32;
    float r = Of::neutral();
    if (i < args.outputs)
      r = of_neighbours<E, Of>(row_of<E>(args, i), args.reduced, threadIdx.x % 32, 32);
    r = over_warp(r, Of());
    if (i < args.outputs && threadIdx.x % 32 == 0)
      static_cast<E*>(args.y)[i] = Convert<E>::from(Of::last(r, n));
  }
}

// Pieces of rows of neighbours; partial[output][piece].
template <class E, class Of>
TN_FN void reduce_pieces(const ReduceArgs& args) {
  for (u64 work = blockIdx.x; work < args.outputs * args.pieces; work += gridDim.x) {
    const u64 begin = work % args.pieces * args.piece, left = args.reduced - begin;
    const E* x = row_of<E>(args, work / args.pieces) + begin;
    float r =
        of_neighbours<E, Of>(x, left < args.piece ? left : args.piece, threadIdx.x, blockDim.x);
    r = over_block(r, Of(), Of::neutral());
    if (threadIdx.x == 0) args.partial[work] = r;
  }
}

template <class E, class Of>
TN_FN void reduce_totals(const ReduceArgs& args) {
  const float n = static_cast<float>(args.reduced);
  for (u64 i = blockIdx.x; i < args.outputs; i += gridDim.x) {
    float r = Of::neutral();
    for (u64 j = threadIdx.x; j < args.pieces; j += blockDim.x)
      r = Of()(r, args.partial[i * args.pieces + j]);
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
#pragma unroll 8
    for (u64 j = 0; j < args.reduced; ++j) {
      r = Of()(r,
               Of::first(value(
                   x[offset_of(j, args.reduced_rank, args.reduced_dims, args.reduced_strides)])));
    }
    static_cast<E*>(args.y)[i] = Convert<E>::from(Of::last(r, n));
  }
}

}  // namespace tn

#define TN_REDUCTION(kind, Of, name, E)                        \
  TN_BLOCK_KERNEL(reduce_rows_##kind##_##name, ReduceArgs) {   \
    tn::reduce_rows<E, tn::Of>(args);                          \
  }                                                            \
  TN_BLOCK_KERNEL(reduce_warps_##kind##_##name, ReduceArgs) {  \
    tn::reduce_warps<E, tn::Of>(args);                         \
  }                                                            \
  TN_BLOCK_KERNEL(reduce_pieces_##kind##_##name, ReduceArgs) { \
    tn::reduce_pieces<E, tn::Of>(args);                        \
  }                                                            \
  TN_BLOCK_KERNEL(reduce_totals_##kind##_##name, ReduceArgs) { \
    tn::reduce_totals<E, tn::Of>(args);                        \
  }                                                            \
  TN_KERNEL(reduce_columns_##kind##_##name, ReduceArgs) {      \
    tn::reduce_columns<E, tn::Of>(args);                       \
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
