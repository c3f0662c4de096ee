// SPDX-License-Identifier: Apache-2.0
#pragma once
// Comparisons of 64-bit numbers, and of 32-bit integers, whose results are bytes (CompareOp in
// ../exact_args.h).

#include "tenon/expr.h"

#include "vector_types.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

// Numbers of the table are read as N: signed and unsigned integers may alias.
template <class N, class Table, class F>
inline void compare_tile(const Table* a, const Table* b, int64_t n, uint8_t* dst, const F& is) {
  constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(N));
  using V = typename VectorOf<N, kWidth>::Type;
  using Bytes = typename VectorOf<int8_t, kWidth>::Type;
  const N* x = reinterpret_cast<const N*>(a);
  const N* y = reinterpret_cast<const N*>(b);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const auto mask = is(load_vector<V>(x + i), load_vector<V>(y + i));
    const Bytes bytes = -__builtin_convertvector(mask, Bytes);
    std::memcpy(dst + i, &bytes, sizeof bytes);
  }
  for (; i < n; ++i)
    dst[i] = is(x[i], y[i]) ? 1 : 0;
}

// The loops of each comparison, by opcode.
template <class N, class Table>
void add_comparisons(void (**compare)(const Table*, const Table*, int64_t, uint8_t*)) {
#define TENON_COMPARISON(name, op)                                                        \
  compare[TN_EXPR_##name] = [](const Table* a, const Table* b, int64_t n, uint8_t* dst) { \
    compare_tile<N>(a, b, n, dst, [](auto x, auto y) { return x op y; });                 \
  };
  TENON_COMPARISON(EQ, ==)
  TENON_COMPARISON(NE, !=)
  TENON_COMPARISON(LT, <)
  TENON_COMPARISON(LE, <=)
  TENON_COMPARISON(GT, >)
  TENON_COMPARISON(GE, >=)
#undef TENON_COMPARISON
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
