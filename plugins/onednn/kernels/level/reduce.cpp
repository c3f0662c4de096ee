// SPDX-License-Identifier: Apache-2.0
// Reductions over k of [outer, k, inner]; contract in ../reduce.h.

#include "level.h"
#include "simd.h"

extern "C" double sqrt(double);

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr float kInfinity = __builtin_inff();
constexpr int64_t kBlock = 4096;    // of a row
constexpr int64_t kBlockRows = 64;  // of columns

struct Add {
  static constexpr float kStart = 0.0F;
  static Vf step(Vf total, Vf x) { return total + x; }
  static double join(double a, double b) { return a + b; }
};
struct AddSquare : Add {
  static Vf step(Vf total, Vf x) { return fma(x, x, total); }
};
struct AddAbsolute : Add {
  static Vf step(Vf total, Vf x) { return total + absolute(x); }
};
struct Max {
  static constexpr float kStart = -kInfinity;
  static Vf step(Vf total, Vf x) { return max_nan(total, x); }
  static double join(double a, double b) { return a > b || a != a ? a : b; }
};
struct Min {
  static constexpr float kStart = kInfinity;
  static Vf step(Vf total, Vf x) { return min_nan(total, x); }
  static double join(double a, double b) { return a < b || a != a ? a : b; }
};

const float* block_f32(const Source& src, int64_t offset, int64_t n, float* buffer) {
  if (src.type == ElementType::kF32) return static_cast<const float*>(src.data) + offset;
  load_f32(src, offset, n, buffer);
  return buffer;
}

double finish(double total, const ReduceArgs& args) {
  if (args.kind == Reduction::kMean) return total / static_cast<double>(args.k);
  return args.kind == Reduction::kL2 ? ::sqrt(total) : total;
}

// Four accumulators hide the latency of the additions.
template <class R>
double reduce_block(const float* x, int64_t n) {
  Vf total[4] = {splat(R::kStart), splat(R::kStart), splat(R::kStart), splat(R::kStart)};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int k = 0; k < 4; ++k)
      total[k] = R::step(total[k], load(x + i + k * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes)
    total[0] = R::step(total[0], load(x + i));
  double result = R::kStart;
  for (int k = 0; k < 4; ++k) {
    for (int lane = 0; lane < kLanes; ++lane) {
      result = R::join(result, static_cast<double>(total[k][lane]));
    }
  }
  for (; i < n; ++i) {
    Vf last = R::step(splat(R::kStart), splat(x[i]));
    result = R::join(result, static_cast<double>(last[0]));
  }
  return result;
}

template <class R>
void rows(const ReduceArgs& args, int64_t lo, int64_t hi) {
  alignas(64) float buffer[kBlock];
  for (int64_t r = lo; r < hi; ++r) {
    double total = R::kStart;
    for (int64_t at = 0; at < args.k; at += kBlock) {
      int64_t n = args.k - at < kBlock ? args.k - at : kBlock;
      total = R::join(total, reduce_block<R>(block_f32(args.src, r * args.k + at, n, buffer), n));
    }
    float result = static_cast<float>(finish(total, args));
    store_f32(&result, 1, args.dst, r, false);
  }
}

// One block of columns: every 64 rows the f32 totals are joined to the f64 ones.
template <class R>
void column_block(const ReduceArgs& args, int64_t outer, int64_t column, int64_t n) {
  alignas(64) float total[kReduceBlock];
  alignas(64) float buffer[kReduceBlock];
  double joined[kReduceBlock];
  for (int64_t i = 0; i < n; ++i)
    joined[i] = static_cast<double>(R::kStart);
  for (int64_t first = 0; first < args.k; first += kBlockRows) {
    int64_t last = args.k - first < kBlockRows ? args.k : first + kBlockRows;
    for (int64_t i = 0; i < n; ++i)
      total[i] = R::kStart;
    for (int64_t row = first; row < last; ++row) {
      const float* x = block_f32(args.src, (outer * args.k + row) * args.inner + column, n, buffer);
      int64_t i = 0;
      for (; i + kLanes <= n; i += kLanes)
        store(total + i, R::step(load(total + i), load(x + i)));
      if (i < n) {
        Vf sum = R::step(load(total + i), load_part(x + i, n - i, 0.0F));
        store_part(total + i, sum, n - i);
      }
    }
    for (int64_t i = 0; i < n; ++i)
      joined[i] = R::join(joined[i], static_cast<double>(total[i]));
  }
  for (int64_t i = 0; i < n; ++i)
    total[i] = static_cast<float>(finish(joined[i], args));
  store_f32(total, n, args.dst, outer * args.inner + column, false);
}

template <class R>
void columns(const ReduceArgs& args, int64_t lo, int64_t hi) {
  const int64_t blocks = (args.inner + kReduceBlock - 1) / kReduceBlock;
  for (int64_t piece = lo; piece < hi; ++piece) {
    int64_t column = piece % blocks * kReduceBlock;
    int64_t n = args.inner - column < kReduceBlock ? args.inner - column : kReduceBlock;
    column_block<R>(args, piece / blocks, column, n);
  }
}

using Run = void (*)(const ReduceArgs&, int64_t, int64_t);
struct ReductionRow {
  Run rows;
  Run columns;
};
template <class R>
constexpr ReductionRow kReductionRow = {rows<R>, columns<R>};
// In the order of Reduction.
constexpr ReductionRow kReductions[] = {
    kReductionRow<Add>,         kReductionRow<Add>,       kReductionRow<Max>,
    kReductionRow<Min>,         kReductionRow<AddSquare>, kReductionRow<AddSquare>,
    kReductionRow<AddAbsolute>,
};
static_assert(sizeof kReductions / sizeof kReductions[0] ==
              static_cast<uint64_t>(Reduction::kCount));

}  // namespace

void reduce_rows(const ReduceArgs& args, int64_t lo, int64_t hi) {
  kReductions[static_cast<int>(args.kind)].rows(args, lo, hi);
}

void reduce_columns(const ReduceArgs& args, int64_t lo, int64_t hi) {
  kReductions[static_cast<int>(args.kind)].columns(args, lo, hi);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
