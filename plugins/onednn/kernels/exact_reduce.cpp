// SPDX-License-Identifier: Apache-2.0
#include "exact_reduce.h"

#include <algorithm>

#include "tenon/expr.h"

#include "tenon/wrapping.hpp"

#include "kernel_table.h"
#include "numbers.h"
#include "scratch.h"

namespace tenon::onednn::kernels {
namespace {

Join join_of(ExactReduction kind) {
  switch (kind) {
    case ExactReduction::kMax:
      return Join::kMax;
    case ExactReduction::kMin:
      return Join::kMin;
    case ExactReduction::kProd:
      return Join::kProd;
    case ExactReduction::kL1:
      return Join::kL1;
    case ExactReduction::kL2:
    case ExactReduction::kSumSquare:
      return Join::kSquares;
    default:
      return Join::kSum;
  }
}

// What a total of elements T is (exact_reduce_args.h).
template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, Bf16>;
template <class T>
using Kept =
    std::conditional_t<kIsHalf<T>, float, std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;
template <class T>
using Sum = std::conditional_t<
    kIsReal<T>,
    double,
    std::conditional_t<std::is_unsigned_v<T> && !std::is_same_v<T, bool>, uint64_t, int64_t>>;

template <class A>
A start_of(Join join) {
  constexpr bool kReal = std::is_floating_point_v<A>;
  using Limits = std::numeric_limits<A>;
  if (join == Join::kMax) return kReal ? -Limits::infinity() : Limits::lowest();
  if (join == Join::kMin) return kReal ? Limits::infinity() : Limits::max();
  return A(join == Join::kProd ? 1 : 0);
}

// Two totals.
template <class A>
A both(Join join, A a, A b) {
  if (join == Join::kMax) return b > a || b != b ? b : a;
  if (join == Join::kMin) return b < a || b != b ? b : a;
  if constexpr (sizeof(A) < sizeof(double)) {
    return a;  // narrower ones are only kept
  } else {
    return join == Join::kProd ? wrapping_mul(a, b) : wrapping_add(a, b);
  }
}

template <class A>
A last(ExactReduction kind, A total, int64_t n) {
  switch (kind) {
    case ExactReduction::kMean:
      return n == 0 && !std::is_floating_point_v<A> ? A(0) : total / static_cast<A>(n);
    case ExactReduction::kL2:
      return static_cast<A>(std::sqrt(static_cast<double>(total)));
    case ExactReduction::kLogSum:
      return static_cast<A>(std::log(static_cast<double>(total)));
    default:
      return total;
  }
}

// A sum for few results is cut into pieces for the threads. blocks: of results; joined: how often
// something is joined to a block; elements: how many are joined each time.
constexpr int64_t kMostPieces = 64;  // of all blocks

int64_t pieces_of(int64_t blocks, int64_t joined, int64_t elements) {
  constexpr int64_t kLeastPiece = 1 << 14;
  constexpr int64_t kEnough = 16;
  if (blocks >= kEnough) return 1;
  return std::clamp<int64_t>(std::min(joined, joined * elements / kLeastPiece), 1,
                             kMostPieces / blocks);
}

// Results of one element type T with totals A.
template <class T, class A>
class Reducing {
 public:
  Reducing(const Context& context, const ExactReduceArgs& args)
      : context_(context), args_(args), join_(join_of(args.kind)) {}

  void run() const {
    if (args_.outer.count == 0) return;
    const bool is_rows = args_.outer.rank > 0 && args_.outer.stride() == 1;
    is_rows ? run_columns() : run_lines();
  }

 private:
  // What goes lies end to end: each result is the total of runs.
  void run_lines() const {
    const int64_t n = args_.outer.count;
    if (args_.outer.rank == 1 && args_.inner.rank == 1 && args_.inner.count <= kShort)
      return run_short_lines();
    const int64_t pieces = pieces_of(n, args_.inner.count, 1);
    if (pieces == 1) {
      parallel_for(context_.parallel, n, grain_rows(args_.inner.count * bytes()),
                   [&](int64_t lo, int64_t hi) {
                     for (int64_t i = lo; i < hi; ++i) {
                       A total = start_of<A>(join_);
                       add_runs(args_.outer.offset(i), 0, args_.inner.count, &total);
                       finish(i, &total, 1);
                     }
                   });
      return;
    }
    std::array<A, kMostPieces> totals;
    parallel_for(context_.parallel, n * pieces, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t unit = lo; unit < hi; ++unit) {
        const int64_t piece = unit % pieces, count = args_.inner.count;
        A& total = totals[static_cast<size_t>(unit)] = start_of<A>(join_);
        add_runs(args_.outer.offset(unit / pieces), count * piece / pieces,
                 count * (piece + 1) / pieces, &total);
      }
    });
    for (int64_t i = 0; i < n; ++i)
      merge(i, totals.data() + i * pieces, pieces, 1);
  }

  // Lines so short that a block of them is transposed, and its rows are joined.
  void run_short_lines() const {
    const int64_t blocks = (args_.outer.count + kColumns - 1) / kColumns;
    const int64_t length = args_.inner.count, stride = args_.outer.stride();
    auto run_block = [&](int64_t first) {
      const int64_t n = std::min(args_.outer.count - first, kColumns);
      const T* const from = static_cast<const T*>(args_.src) + first * stride;
      alignas(64) std::array<T, kShort * kColumns> rows;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t k = 0; k < length; ++k)
          rows[static_cast<size_t>(k * kColumns + i)] = from[i * stride + k];
      std::array<A, kColumns> totals;
      std::fill_n(totals.data(), n, start_of<A>(join_));
      context_.table->join_rows({.join = join_,
                                 .type = args_.type,
                                 .src = rows.data(),
                                 .rows = length,
                                 .row_stride = kColumns,
                                 .n = n,
                                 .totals = totals.data()});
      finish(first, totals.data(), n);
    };
    parallel_for(context_.parallel, blocks, grain_rows(length * kColumns * bytes()),
                 [&](int64_t lo, int64_t hi) {
                   for (int64_t block = lo; block < hi; ++block)
                     run_block(block * kColumns);
                 });
  }

  // What stays lies end to end: rows are joined, in blocks of columns that stay in the first cache.
  void run_columns() const {
    const int64_t width = args_.outer.extent();
    const int64_t blocks_of_row = (width + kColumns - 1) / kColumns;
    const int64_t blocks = args_.outer.count / width * blocks_of_row;
    const int64_t columns = std::min(width, kColumns), rows = args_.inner.count;
    const int64_t pieces = pieces_of(blocks, rows, columns);
    const int64_t n_totals = pieces == 1 ? 0 : blocks * pieces * columns;
    A* const totals =
        reinterpret_cast<A*>(scratch_of_thread(n_totals * static_cast<int64_t>(sizeof(A))));
    auto run_unit = [&](int64_t unit) {
      const int64_t block = unit / pieces, piece = unit % pieces;
      const int64_t column = block % blocks_of_row * kColumns;
      const int64_t at = block / blocks_of_row * width + column;
      const int64_t n = std::min(width - column, kColumns);
      std::array<A, kColumns> own;
      A* const to = pieces == 1 ? own.data() : totals + unit * columns;
      std::fill_n(to, n, start_of<A>(join_));
      add_rows(args_.outer.offset(at), rows * piece / pieces, rows * (piece + 1) / pieces, n, to);
      if (pieces == 1) finish(at, to, n);
    };
    parallel_for(context_.parallel, blocks * pieces,
                 pieces > 1 ? 1 : grain_rows(rows * columns * bytes()),
                 [&](int64_t lo, int64_t hi) {
                   for (int64_t unit = lo; unit < hi; ++unit)
                     run_unit(unit);
                 });
    for (int64_t block = 0; pieces > 1 && block < blocks; ++block) {
      const int64_t column = block % blocks_of_row * kColumns;
      merge(block / blocks_of_row * width + column, totals + block * pieces * columns, pieces,
            std::min(width - column, kColumns), columns);
    }
  }

  // Elements [lo, hi) of those that go.
  void add_runs(int64_t at, int64_t lo, int64_t hi, A* total) const {
    const int64_t extent = args_.inner.extent();
    for (int64_t i = lo; i < hi;) {
      const int64_t end = std::min(hi, (i / extent + 1) * extent);
      context_.table->join_run({.join = join_,
                                .type = args_.type,
                                .src = address(at + args_.inner.offset(i)),
                                .n = end - i,
                                .totals = total});
      i = end;
    }
  }

  void add_rows(int64_t at, int64_t lo, int64_t hi, int64_t n, A* totals) const {
    const int64_t extent = args_.inner.extent();
    for (int64_t i = lo; i < hi;) {
      const int64_t end = std::min(hi, (i / extent + 1) * extent);
      context_.table->join_rows({.join = join_,
                                 .type = args_.type,
                                 .src = address(at + args_.inner.offset(i)),
                                 .rows = end - i,
                                 .row_stride = args_.inner.stride(),
                                 .n = n,
                                 .totals = totals});
      i = end;
    }
  }

  // totals: [pieces, stride], n of each
  void merge(int64_t at, A* totals, int64_t pieces, int64_t n, int64_t stride = 1) const {
    for (int64_t piece = 1; piece < pieces; ++piece)
      for (int64_t i = 0; i < n; ++i)
        totals[i] = both(join_, totals[i], totals[piece * stride + i]);
    finish(at, totals, n);
  }

  void finish(int64_t at, const A* totals, int64_t n) const {
    T* const out = static_cast<T*>(args_.dst) + at;
    for (int64_t i = 0; i < n; ++i)
      out[i] = number_cast<T>(last(args_.kind, totals[i], args_.inner.count));
  }

  const void* address(int64_t offset) const { return static_cast<const T*>(args_.src) + offset; }
  static constexpr int64_t bytes() { return static_cast<int64_t>(sizeof(T)); }

  static constexpr int64_t kColumns = 256;
  static constexpr int64_t kShort = 16;  // elements of a line

  const Context& context_;
  const ExactReduceArgs& args_;
  const Join join_;
};

// log(sum(exp(x))): the largest first, which is subtracted.
template <class T>
class LogSumExp {
 public:
  LogSumExp(const Context& context, const ExactReduceArgs& args) : context_(context), args_(args) {
    context.table->real_ops(&ops_);
  }

  void run() const {
    parallel_for(context_.parallel, args_.outer.count, grain_rows(args_.inner.count * 16),
                 [&](int64_t lo, int64_t hi) {
                   if (args_.inner.count > 0 && args_.inner.count <= kShort)
                     return of_short(lo, hi);
                   for (int64_t i = lo; i < hi; ++i)
                     static_cast<T*>(args_.dst)[i] = of(args_.outer.offset(i));
                 });
  }

 private:
  static constexpr int64_t kShort = kExactTile / 4;

  // Several results at once, whose numbers share a tile, so that a call takes many exponentials.
  void of_short(int64_t lo, int64_t hi) const {
    const int64_t n = args_.inner.count, in_tile = kExactTile / n;
    std::array<int64_t, kShort> offsets;
    for (int64_t k = 0; k < n; ++k)
      offsets[static_cast<size_t>(k)] = args_.inner.offset(k);
    std::array<double, kExactTile> tile, shifts;
    for (int64_t first = lo; first < hi; first += in_tile) {
      const int64_t count = std::min(in_tile, hi - first);
      double* const x = tile.data();
      for (int64_t i = 0; i < count; ++i) {
        const T* const from = static_cast<const T*>(args_.src) + args_.outer.offset(first + i);
        shifts[static_cast<size_t>(i)] = load_shifted(from, offsets.data(), x + i * n);
      }
      ops_->of[TN_EXPR_EXP](x, x, x, count * n, x);
      for (int64_t i = 0; i < count; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < n; ++k)
          sum += x[i * n + k];
        static_cast<T*>(args_.dst)[first + i] =
            number_cast<T>(std::log(sum) + shifts[static_cast<size_t>(i)]);
      }
    }
  }

  // The numbers less their largest, which is returned; as they are where that is not finite.
  double load_shifted(const T* from, const int64_t* offsets, double* x) const {
    const int64_t n = args_.inner.count;
    double most = -HUGE_VAL;
    for (int64_t k = 0; k < n; ++k) {
      x[k] = number_cast<double>(from[offsets[k]]);
      most = std::max(most, x[k]);
    }
    if (!std::isfinite(most)) return 0;
    for (int64_t k = 0; k < n; ++k)
      x[k] -= most;
    return most;
  }

  T of(int64_t at) const {
    double most = -HUGE_VAL, sum = 0;
    over_tiles(at, [&](double* x, int64_t n) { join(Join::kMax, x, n, &most); });
    const double shift = std::isfinite(most) ? most : 0;
    over_tiles(at, [&](double* x, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        x[i] -= shift;
      ops_->of[TN_EXPR_EXP](x, x, x, n, x);
      join(Join::kSum, x, n, &sum);
    });
    return number_cast<T>(std::log(sum) + shift);
  }

  void join(Join join, const double* x, int64_t n, double* total) const {
    context_.table->join_run({.join = join, .src = x, .n = n, .totals = total});
  }

  // Calls f(numbers, n) for the elements that go, as doubles.
  template <class F>
  void over_tiles(int64_t at, const F& f) const {
    std::array<double, kExactTile> tile;
    const int64_t extent = args_.inner.extent(), stride = args_.inner.stride();
    for (int64_t i = 0; i < args_.inner.count;) {
      const int64_t n =
          std::min({kExactTile, args_.inner.count - i, (i / extent + 1) * extent - i});
      const T* const from = static_cast<const T*>(args_.src) + at + args_.inner.offset(i);
      for (int64_t k = 0; k < n; ++k)
        tile[static_cast<size_t>(k)] = number_cast<double>(from[k * stride]);
      f(tile.data(), n);
      i += n;
    }
  }

  const Context& context_;
  const ExactReduceArgs& args_;
  const RealOps* ops_ = nullptr;
};

}  // namespace

void exact_reduce(const Context& context, const ExactReduceArgs& args) {
  visit(args.type, [&]<class T>() {
    if (args.kind == ExactReduction::kLogSumExp) return LogSumExp<T>(context, args).run();
    if (keeps_an_element(join_of(args.kind))) return Reducing<T, Kept<T>>(context, args).run();
    Reducing<T, Sum<T>>(context, args).run();
  });
}

}  // namespace tenon::onednn::kernels
