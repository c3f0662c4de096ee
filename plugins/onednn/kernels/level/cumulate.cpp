// SPDX-License-Identifier: Apache-2.0
// Running sums; contract in ../cumulate.h.

#include "../cumulate_args.h"
#include "level.h"
#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

struct Sum {
  static constexpr double kStart = 0;
  template <class T>
  T operator()(T total, T number) const {
    return total + number;
  }
};
struct Product {
  static constexpr double kStart = 1;
  template <class T>
  T operator()(T total, T number) const {
    return total * number;
  }
};

// Joins one row of the axis, of n columns, to their totals.
template <class Join>
void join_row(const float* src, int64_t n, bool is_exclusive, double* totals, float* dst) {
  const Join join;
  int64_t i = 0;
  for (; i + kHalfLanes <= n; i += kHalfLanes) {
    const Vd before = load_vector<Vd>(totals + i);
    const Vd number = __builtin_convertvector(load_vector<HalfLanes<float>>(src + i), Vd);
    const Vd after = join(before, number);
    std::memcpy(totals + i, &after, sizeof after);
    const HalfLanes<float> result =
        __builtin_convertvector(is_exclusive ? before : after, HalfLanes<float>);
    std::memcpy(dst + i, &result, sizeof result);
  }
  for (; i < n; ++i) {
    const double before = totals[i];
    totals[i] = join(before, static_cast<double>(src[i]));
    dst[i] = static_cast<float>(is_exclusive ? before : totals[i]);
  }
}

template <class Join>
void columns(const CumulateArgs& args, int64_t lo, int64_t hi) {
  const int64_t n_blocks = (args.inner + kCumulateColumns - 1) / kCumulateColumns;
  double totals[kCumulateColumns];
  for (int64_t block = lo; block < hi; ++block) {
    const int64_t first = block % n_blocks * kCumulateColumns;
    const int64_t left = args.inner - first;
    const int64_t n = left < kCumulateColumns ? left : kCumulateColumns;
    for (int64_t i = 0; i < n; ++i)
      totals[i] = Join::kStart;
    for (int64_t k = 0; k < args.k; ++k) {
      const int64_t row = block / n_blocks * args.k + (args.is_reverse ? args.k - 1 - k : k);
      const int64_t at = row * args.inner + first;
      join_row<Join>(args.src + at, n, args.is_exclusive, totals, args.dst + at);
    }
  }
}

// n rows that lie along the axis, in turn: a sum waits for the one before it.
template <class Join, int n>
void rows_in_turn(const CumulateArgs& args, int64_t row) {
  const Join join;
  double totals[n];
  for (double& total : totals)
    total = Join::kStart;
  const int64_t step = args.is_reverse ? -1 : 1;
  int64_t at = row * args.k + (args.is_reverse ? args.k - 1 : 0);
  for (int64_t k = 0; k < args.k; ++k, at += step) {
    for (int r = 0; r < n; ++r) {
      const double before = totals[r];
      totals[r] = join(before, static_cast<double>(args.src[at + r * args.k]));
      args.dst[at + r * args.k] = static_cast<float>(args.is_exclusive ? before : totals[r]);
    }
  }
}

template <class Join>
void blocks(const CumulateArgs& args, int64_t lo, int64_t hi) {
  if (args.inner > 1) return columns<Join>(args, lo, hi);
  constexpr int kInTurn = 8;
  for (; lo + kInTurn <= hi; lo += kInTurn)
    rows_in_turn<Join, kInTurn>(args, lo);
  for (; lo < hi; ++lo)
    rows_in_turn<Join, 1>(args, lo);
}

}  // namespace

void cumulate_blocks(const CumulateArgs& args, int64_t lo, int64_t hi) {
  if (args.is_product)
    blocks<Product>(args, lo, hi);
  else
    blocks<Sum>(args, lo, hi);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
