// SPDX-License-Identifier: Apache-2.0
// Runs of numbers joined to one total, and rows to one total per column; contract in
// ../exact_reduce_args.h.

#include "elements.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

template <class T>
constexpr bool kIsReal = T(0.5) != T(0);
template <class T>
constexpr bool kIsSigned = T(-1) < T(0);
template <bool, class Yes, class No>
struct Either {
  using Type = Yes;
};
template <class Yes, class No>
struct Either<false, Yes, No> {
  using Type = No;
};

// The type of a total of elements T.
template <Join join, class T>
using Total = typename Either<
    keeps_an_element(join),
    T,
    typename Either<kIsReal<T>, double, typename Either<kIsSigned<T>, int64_t, uint64_t>::Type>::
        Type>::Type;

// In which totals are computed: integers without a sign, which wrap.
template <Join join, class T>
using Number =
    typename Either<!keeps_an_element(join) && !kIsReal<T>, uint64_t, Total<join, T>>::Type;

inline bool is_negative(double x) {
  return x < 0;
}
inline bool is_negative(uint64_t x) {
  return x >> 63 != 0;
}
inline Vl is_negative(Vd x) {
  return x < Vd{};
}
inline Vl is_negative(HalfLanes<uint64_t> x) {
  return reinterpret_cast<Vl>(x) < Vl{};
}

// A total and an element, or vectors of them.
template <Join join, bool is_signed, class A>
inline A joined(A total, A x) {
  if constexpr (join == Join::kMax) {
    return ((x > total) | (x != x)) ? x : total;
  } else if constexpr (join == Join::kMin) {
    return ((x < total) | (x != x)) ? x : total;
  } else if constexpr (join == Join::kProd) {
    return total * x;
  } else if constexpr (join == Join::kSquares) {
    return total + x * x;
  } else if constexpr (join == Join::kL1 && is_signed) {
    return is_negative(x) ? total - x : total + x;
  } else {
    return total + x;
  }
}

// Of one join and element type: totals and vectors of them.
template <Join join, class T>
struct Joining {
  using A = Number<join, T>;
  static constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(A));
  using V = typename VectorOf<A, kWidth>::Type;
  static constexpr bool kAdds = join == Join::kL1 || join == Join::kSquares;

  template <class X>
  static X step(X total, X x) {
    return joined<join, kIsSigned<T>>(total, x);
  }
  // Two totals.
  template <class X>
  static X merge(X a, X b) {
    return joined<kAdds ? Join::kSum : join, kIsSigned<T>>(a, b);
  }
  static V load(const T* p) {
    return __builtin_convertvector(load_vector<typename VectorOf<T, kWidth>::Type>(p), V);
  }
  // What changes nothing: of maxima the total so far, which counts any number of times.
  static V start(A total) {
    if constexpr (keeps_an_element(join)) {
      return total - V{};
    } else {
      return A(join == Join::kProd ? 1 : 0) - V{};
    }
  }
};

// Four accumulators hide the latency of a step.
template <Join join, class T>
void run(const JoinArgs& args) {
  using J = Joining<join, T>;
  using A = typename J::A;
  using V = typename J::V;
  const T* x = static_cast<const T*>(args.src);
  A total = *static_cast<A*>(args.totals);
  int64_t i = 0;
  if (args.n >= J::kWidth) {
    V parts[4];
    for (V& part : parts)
      part = J::start(total);
    for (; i + 4 * J::kWidth <= args.n; i += 4 * J::kWidth) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k)
        parts[k] = J::step(parts[k], J::load(x + i + k * J::kWidth));
    }
    for (; i + J::kWidth <= args.n; i += J::kWidth)
      parts[0] = J::step(parts[0], J::load(x + i));
    const V all = J::merge(J::merge(parts[0], parts[1]), J::merge(parts[2], parts[3]));
    for (int lane = 0; lane < J::kWidth; ++lane)
      total = J::merge(total, A(all[lane]));
  }
  for (; i < args.n; ++i)
    total = J::step(total, static_cast<A>(x[i]));
  *static_cast<A*>(args.totals) = total;
}

// So few columns without gaps that a register holds several rows: each place of n registers always
// has the same column.
template <Join join, class T>
int64_t narrow_rows(const JoinArgs& args) {
  using J = Joining<join, T>;
  using A = typename J::A;
  using V = typename J::V;
  constexpr int64_t kMost = 8;
  if (args.n > kMost || args.row_stride != args.n || args.rows < 4 * J::kWidth) return 0;
  const T* x = static_cast<const T*>(args.src);
  A* const totals = static_cast<A*>(args.totals);
  V parts[kMost];
  for (int64_t k = 0; k < args.n; ++k) {
    parts[k] = J::start(totals[0]);
    for (int lane = 0; keeps_an_element(join) && lane < J::kWidth; ++lane)
      parts[k][lane] = totals[(k * J::kWidth + lane) % args.n];
  }
  int64_t row = 0;
  for (; row + J::kWidth <= args.rows; row += J::kWidth)
    for (int64_t k = 0; k < args.n; ++k, x += J::kWidth)
      parts[k] = J::step(parts[k], J::load(x));
  for (int64_t k = 0; k < args.n; ++k)
    for (int lane = 0; lane < J::kWidth; ++lane) {
      A& total = totals[(k * J::kWidth + lane) % args.n];
      total = J::merge(total, A(parts[k][lane]));
    }
  return row;
}

// Four rows at once, so that each total is read and written once for them.
template <Join join, class T, int n_rows>
void add_rows(const T* x, int64_t row_stride, int64_t n, typename Joining<join, T>::A* totals) {
  using J = Joining<join, T>;
  using A = typename J::A;
  int64_t i = 0;
  for (; i + J::kWidth <= n; i += J::kWidth) {
    auto total = load_vector<typename J::V>(totals + i);
#pragma GCC unroll 4
    for (int row = 0; row < n_rows; ++row)
      total = J::step(total, J::load(x + row * row_stride + i));
    std::memcpy(totals + i, &total, sizeof total);
  }
  for (; i < n; ++i)
    for (int row = 0; row < n_rows; ++row)
      totals[i] = J::step(totals[i], static_cast<A>(x[row * row_stride + i]));
}

template <Join join, class T>
void rows(const JoinArgs& args) {
  const T* const x = static_cast<const T*>(args.src);
  auto* const totals = static_cast<typename Joining<join, T>::A*>(args.totals);
  int64_t row = narrow_rows<join, T>(args);
  for (; row + 4 <= args.rows; row += 4)
    add_rows<join, T, 4>(x + row * args.row_stride, args.row_stride, args.n, totals);
  for (; row < args.rows; ++row)
    add_rows<join, T, 1>(x + row * args.row_stride, args.row_stride, args.n, totals);
}

// Halves by way of blocks of f32.
constexpr int64_t kBlock = 512;

template <Join join, class T>
void run_by_blocks(const JoinArgs& args) {
  alignas(kVectorBytes) float block[kBlock];
  JoinArgs part = args;
  part.src = block;
  for (int64_t at = 0; at < args.n; at += kBlock) {
    part.n = args.n - at < kBlock ? args.n - at : kBlock;
    load_f32({args.src, args.type}, at, part.n, block);
    run<join, float>(part);
  }
}

// Rows without gaps, as many as a block holds; or pieces of one row.
template <Join join, class T>
void rows_by_blocks(const JoinArgs& args) {
  alignas(kVectorBytes) float block[kBlock];
  JoinArgs part = args;
  part.src = block;
  part.row_stride = args.n;
  const bool are_narrow = args.row_stride == args.n && args.n > 0 && args.n <= kBlock;
  const int64_t most = are_narrow ? kBlock / args.n : 1;
  for (int64_t row = 0; row < args.rows; row += part.rows) {
    part.rows = args.rows - row < most ? args.rows - row : most;
    for (int64_t at = 0; at < args.n; at += kBlock) {
      part.n = args.n - at < kBlock ? args.n - at : kBlock;
      part.totals = static_cast<typename Joining<join, float>::A*>(args.totals) + at;
      load_f32({args.src, args.type}, row * args.row_stride + at, part.rows * part.n, block);
      rows<join, float>(part);
    }
  }
}

// One join of every element type, in the order of ElementType.
using Run = void (*)(const JoinArgs&);
struct Row {
  Run of[static_cast<int>(ElementType::kU64) + 1];
};
#define TENON_OF_EACH_TYPE(f, by_blocks)                                                          \
  {                                                                                               \
    {                                                                                             \
      f<join, float>, by_blocks<join, float>, by_blocks<join, float>, f<join, uint8_t>,           \
          f<join, int8_t>, f<join, int32_t>, f<join, int64_t>, f<join, uint8_t>, f<join, double>, \
          f<join, uint16_t>, f<join, int16_t>, f<join, uint32_t>, f<join, uint64_t>               \
    }                                                                                             \
  }
template <Join join>
constexpr Row kRuns = TENON_OF_EACH_TYPE(run, run_by_blocks);
template <Join join>
constexpr Row kRows = TENON_OF_EACH_TYPE(rows, rows_by_blocks);
#undef TENON_OF_EACH_TYPE

#define TENON_OF_EACH_JOIN(f) \
  {f<Join::kSum>, f<Join::kMax>, f<Join::kMin>, f<Join::kProd>, f<Join::kL1>, f<Join::kSquares>}
constexpr Row kRunsOf[] = TENON_OF_EACH_JOIN(kRuns);
constexpr Row kRowsOf[] = TENON_OF_EACH_JOIN(kRows);
#undef TENON_OF_EACH_JOIN
static_assert(sizeof kRunsOf / sizeof kRunsOf[0] == static_cast<uint64_t>(Join::kCount));

}  // namespace

void join_run(const JoinArgs& args) {
  kRunsOf[static_cast<int>(args.join)].of[static_cast<int>(args.type)](args);
}

void join_rows(const JoinArgs& args) {
  kRowsOf[static_cast<int>(args.join)].of[static_cast<int>(args.type)](args);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
