// SPDX-License-Identifier: Apache-2.0
// Reductions over k of [outer, k, inner]; contract in ../reduce.h.

#include "elements.h"
#include "level.h"
#include "transpose.h"

extern "C" double sqrt(double);

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr float kInfinity = __builtin_inff();
constexpr int64_t kBlock = 4096;    // of a row
constexpr int64_t kBlockRows = 64;  // of columns
constexpr int64_t kLongestShortRow = 128;
static_assert(kLanes * kLongestShortRow + kLanes <= kBlock);

constexpr int64_t kFewestWideRows = 4;

// step: another number for the total; merge: two totals of one kind; join: the same, in f64; lanes:
// all lanes of a total.
struct Add {
  static constexpr bool kIsOrdered = false;
  static constexpr bool kMayRepeat = false;  // a number that counts twice changes the total
  static constexpr float kStart = 0.0F;
  static Vf step(Vf total, Vf x) { return total + x; }
  static Vf merge(Vf a, Vf b) { return a + b; }
  static double join(double a, double b) { return a + b; }
  static double lanes(Vf total) {
    double parts[4] = {};
    for (int lane = 0; lane < kLanes; lane += 4)
      for (int i = 0; i < 4; ++i)
        parts[i] += static_cast<double>(total[lane + i]);
    return (parts[0] + parts[1]) + (parts[2] + parts[3]);
  }
};
struct AddSquare : Add {
  static Vf step(Vf total, Vf x) { return fma(x, x, total); }
};
struct AddAbsolute : Add {
  static Vf step(Vf total, Vf x) { return total + absolute(x); }
};
struct Max {
  static constexpr bool kIsOrdered = false;
  static constexpr bool kMayRepeat = true;
  static constexpr float kStart = -kInfinity;
  static Vf step(Vf total, Vf x) { return max_nan(total, x); }
  static Vf merge(Vf a, Vf b) { return max_nan(a, b); }
  static double join(double a, double b) { return a > b || a != a ? a : b; }
  static double lanes(Vf total) { return static_cast<double>(fold_lanes(total, max_nan)); }
};
struct Min {
  static constexpr bool kIsOrdered = false;
  static constexpr bool kMayRepeat = true;
  static constexpr float kStart = kInfinity;
  static Vf step(Vf total, Vf x) { return min_nan(total, x); }
  static Vf merge(Vf a, Vf b) { return min_nan(a, b); }
  static double join(double a, double b) { return a < b || a != a ? a : b; }
  static double lanes(Vf total) { return static_cast<double>(fold_lanes(total, min_nan)); }
};

struct Multiply {
  static constexpr bool kIsOrdered = true;
  static constexpr float kStart = 1.0F;
  static Vf step(Vf total, Vf x) { return total * x; }
  static double join(double a, double b) { return a * b; }
};

void finish(double* totals, int64_t n, const ReduceArgs& args) {
  if (args.kind == Reduction::kMean) {
    const double k = static_cast<double>(args.k);
    for (int64_t i = 0; i < n; ++i)
      totals[i] /= k;
  } else if (args.kind == Reduction::kL2) {
    for (int64_t i = 0; i < n; ++i)
      totals[i] = ::sqrt(totals[i]);
  }
}

// Four accumulators hide the latency of the additions.
template <class R, class T>
double reduce_block(const T* x, int64_t n) {
  Vf total[4] = {splat(R::kStart), splat(R::kStart), splat(R::kStart), splat(R::kStart)};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int k = 0; k < 4; ++k)
      total[k] = R::step(total[k], load_lanes(x + i + k * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes)
    total[0] = R::step(total[0], load_lanes(x + i));
  if (R::kMayRepeat && i < n && n >= kLanes) {
    total[1] = R::step(total[1], load_lanes(x + n - kLanes));
    i = n;
  }
  Vf all = R::merge(R::merge(total[0], total[1]), R::merge(total[2], total[3]));
  double result = R::lanes(all);
  for (; i < n; ++i) {
    Vf last = R::step(splat(R::kStart), load_lanes_part(x + i, 1));
    result = R::join(result, static_cast<double>(last[0]));
  }
  return result;
}

// The numbers of a source: what `at` gives is good until the next call.
template <class T>
class Direct {
 public:
  using Number = T;
  explicit Direct(const Source& src) : data_(static_cast<const T*>(src.data)) {}
  const T* at(int64_t offset, int64_t) { return data_ + offset; }

 private:
  const T* data_;
};
class Converted {
 public:
  using Number = float;
  explicit Converted(const Source& src) : src_(src) {}
  const float* at(int64_t offset, int64_t n) {
    load_f32(src_, offset, n, buffer_);
    return buffer_;
  }

 private:
  const Source& src_;
  alignas(64) float buffer_[kBlock];
};

template <class R, class From>
void rows(const ReduceArgs& args, int64_t lo, int64_t hi) {
  From from(args.src);
  for (int64_t r = lo; r < hi; ++r) {
    double total = R::kStart;
    for (int64_t at = 0; at < args.k; at += kBlock) {
      int64_t n = args.k - at < kBlock ? args.k - at : kBlock;
      total = R::join(total, reduce_block<R>(from.at(r * args.k + at, n), n));
    }
    finish(&total, 1, args);
    float result = static_cast<float>(total);
    store_f32(&result, 1, args.dst, r, false);
  }
}

// In their order, in f64: lanes of their own would overflow where large and small numbers take
// turns.
template <class From>
void product_rows(const ReduceArgs& args, int64_t lo, int64_t hi) {
  From from(args.src);
  for (int64_t r = lo; r < hi; ++r) {
    double total = 1;
    for (int64_t at = 0; at < args.k; at += kBlock) {
      const int64_t n = args.k - at < kBlock ? args.k - at : kBlock;
      const float* x = from.at(r * args.k + at, n);
      for (int64_t i = 0; i < n; ++i)
        total *= static_cast<double>(x[i]);
    }
    const float result = static_cast<float>(total);
    store_f32(&result, 1, args.dst, r, false);
  }
}

template <class R, class T>
void add_row(float* total, const T* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(total + i, R::step(load(total + i), load_lanes(x + i)));
  if (i < n) {
    Vf sum = R::step(load(total + i), load_lanes_part(x + i, n - i));
    store_part(total + i, sum, n - i);
  }
}

// Narrow rows are taken several side by side, as one row: each has totals of its own.
template <class R>
int64_t rows_side_by_side(const ReduceArgs& args) {
  if (R::kIsOrdered) return 1;
  const int64_t most = kReduceBlock / args.inner;
  const int64_t there = args.k / kFewestWideRows;
  const int64_t count = most < there ? most : there;
  return count > 1 ? count : 1;
}

// One block of columns: every 64 rows the f32 totals are joined to the f64 ones.
template <class R, class From>
void column_block(const ReduceArgs& args, From& from, int64_t outer, int64_t column, int64_t n) {
  alignas(64) float total[kReduceBlock];
  double joined[kReduceBlock];
  const int64_t side = rows_side_by_side<R>(args), width = side * n;
  for (int64_t i = 0; i < width; ++i)
    joined[i] = static_cast<double>(R::kStart);
  auto add = [&](int64_t first, int64_t last, int64_t step, int64_t numbers) {
    for (int64_t i = 0; i < numbers; ++i)
      total[i] = R::kStart;
    for (int64_t row = first; row < last; row += step)
      add_row<R>(total, from.at((outer * args.k + row) * args.inner + column, numbers), numbers);
    for (int64_t i = 0; i < numbers; ++i)
      joined[i] = R::join(joined[i], static_cast<double>(total[i]));
  };
  const int64_t whole = args.k - args.k % side, block = kBlockRows * side;
  for (int64_t first = 0; first < whole; first += block)
    add(first, whole - first < block ? whole : first + block, side, width);
  if (whole < args.k) add(whole, args.k, 1, n);
  for (int64_t i = n; i < width; ++i)
    joined[i % n] = R::join(joined[i % n], joined[i]);
  finish(joined, n, args);
  for (int64_t i = 0; i < n; ++i)
    total[i] = static_cast<float>(joined[i]);
  store_f32(total, n, args.dst, outer * args.inner + column, false);
}

template <class R, class From>
void columns(const ReduceArgs& args, int64_t lo, int64_t hi) {
  const int64_t blocks = (args.inner + kReduceBlock - 1) / kReduceBlock;
  From from(args.src);
  for (int64_t piece = lo; piece < hi; ++piece) {
    int64_t column = piece % blocks * kReduceBlock;
    int64_t n = args.inner - column < kReduceBlock ? args.inner - column : kReduceBlock;
    column_block<R>(args, from, piece / blocks, column, n);
  }
}

// The total of all lanes of rows[i], in lane i.
template <class R>
[[gnu::always_inline]] inline Vf total_of_each(Vf (&rows)[kLanes]) {
  using List = LanesBelow<kLanes>::List;
#pragma GCC unroll 4
  for (int n = kLanes / 2; n > 0; n /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i)
      rows[i] = R::merge(interleave<0>(rows[i], rows[i + n], List()),
                         interleave<kLanes / 2>(rows[i], rows[i + n], List()));
  }
  return rows[0];
}

// kLanes rows of k numbers; a register behind the last one is read too, and counts nothing.
template <class R, class T>
[[gnu::always_inline]] inline Vf totals_of_rows(const T* x, int64_t k, Vi is_rest) {
  Vf rows[kLanes];
  const int64_t whole = k - k % kLanes;
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) {
    const T* row = x + r * k;
    Vf total = splat(R::kStart);
    for (int64_t i = 0; i < whole; i += kLanes)
      total = R::step(total, load_lanes(row + i));
    const Vf last = R::step(total, load_lanes(row + whole));
    rows[r] = is_rest ? last : total;
  }
  return total_of_each<R>(rows);
}

// Short rows, and as many as lanes at least: kLanes of them at a time. Those at the end of the
// source are computed in a copy, so that nothing behind it is read.
template <class R, class From>
void short_rows(const ReduceArgs& args, int64_t lo, int64_t hi) {
  From from(args.src);
  using T = typename From::Number;
  const int64_t k = args.k;
  Vi is_rest = {};
  for (int i = 0; i < kLanes; ++i)
    is_rest[i] = i < k % kLanes ? -1 : 0;
  for (int64_t r = lo; r < hi; r += kLanes) {
    const int64_t n = hi - r < kLanes ? hi - r : kLanes;
    const int64_t wanted = kLanes * k + kLanes;
    const int64_t left = (args.outer - r) * k;
    alignas(64) float totals[kLanes];
    double finished[kLanes];
    if (left >= wanted) {
      store(totals, totals_of_rows<R>(from.at(r * k, wanted), k, is_rest));
    } else {
      T padded[kLanes * kLongestShortRow + kLanes];
      const auto there = static_cast<uint64_t>(n * k) * sizeof(T);
      if (there > 0) std::memcpy(padded, from.at(r * k, n * k), there);
      std::memset(padded + n * k, 0, static_cast<uint64_t>(wanted - n * k) * sizeof(T));
      store(totals, totals_of_rows<R>(padded, k, is_rest));
    }
    for (int i = 0; i < kLanes; ++i)
      finished[i] = static_cast<double>(totals[i]);
    finish(finished, kLanes, args);
    for (int i = 0; i < kLanes; ++i)
      totals[i] = static_cast<float>(finished[i]);
    store_f32(totals, n, args.dst, r, false);
  }
}

using Run = void (*)(const ReduceArgs&, int64_t, int64_t);
struct ReductionRow {
  Run f32_short, bf16_short, any_short;
  Run f32_rows, bf16_rows, any_rows;
  Run f32_columns, bf16_columns, any_columns;
};
template <class R>
constexpr ReductionRow kReductionRow = {
    short_rows<R, Direct<float>>, short_rows<R, Direct<Bf16>>, short_rows<R, Converted>,
    rows<R, Direct<float>>,       rows<R, Direct<Bf16>>,       rows<R, Converted>,
    columns<R, Direct<float>>,    columns<R, Direct<Bf16>>,    columns<R, Converted>};
constexpr ReductionRow kProductRow = {
    product_rows<Direct<float>>,      product_rows<Converted>,
    product_rows<Converted>,          product_rows<Direct<float>>,
    product_rows<Converted>,          product_rows<Converted>,
    columns<Multiply, Direct<float>>, columns<Multiply, Direct<Bf16>>,
    columns<Multiply, Converted>};
// In the order of Reduction.
constexpr ReductionRow kReductions[] = {
    kReductionRow<Add>,         kReductionRow<Add>,
    kReductionRow<Max>,         kReductionRow<Min>,
    kReductionRow<AddSquare>,   kReductionRow<AddSquare>,
    kReductionRow<AddAbsolute>, kProductRow,
};
static_assert(sizeof kReductions / sizeof kReductions[0] ==
              static_cast<uint64_t>(Reduction::kCount));

Run by_type(ElementType type, Run f32, Run bf16, Run any) {
  return type == ElementType::kF32 ? f32 : type == ElementType::kBf16 ? bf16 : any;
}

}  // namespace

void reduce_rows(const ReduceArgs& args, int64_t lo, int64_t hi) {
  const ReductionRow& row = kReductions[static_cast<int>(args.kind)];
  if (args.k <= kLongestShortRow && args.outer >= kLanes)
    return by_type(args.src.type, row.f32_short, row.bf16_short, row.any_short)(args, lo, hi);
  by_type(args.src.type, row.f32_rows, row.bf16_rows, row.any_rows)(args, lo, hi);
}

void reduce_columns(const ReduceArgs& args, int64_t lo, int64_t hi) {
  const ReductionRow& row = kReductions[static_cast<int>(args.kind)];
  by_type(args.src.type, row.f32_columns, row.bf16_columns, row.any_columns)(args, lo, hi);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
