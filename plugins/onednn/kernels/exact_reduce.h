// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions of any axes of a dense tensor of any element type. Sums and products are made in
// double of reals, and in integers of 64 bits, which wrap, of integers. NaN spreads. Of no elements
// sums are 0, products 1, and maxima the least number of the type. The pieces of a long sum follow
// from the shape alone, so that a result does not depend on the number of threads.

#include <array>
#include <cstddef>
#include <cstdint>

#include "context.h"
#include "exact_reduce_args.h"

namespace tenon::onednn::kernels {

enum class ExactReduction : uint8_t {
  kSum,
  kMean,
  kMax,
  kMin,
  kProd,
  kL1,
  kL2,
  kSumSquare,
  kLogSum,
  kLogSumExp
};

// Some axes of a tensor, outermost first.
struct Walk {
  static constexpr size_t kMostAxes = 8;
  std::array<int64_t, kMostAxes> dims = {};
  std::array<int64_t, kMostAxes> strides = {};
  size_t rank = 0;
  int64_t count = 1;

  // Axes that lie end to end are one.
  void add(int64_t dim, int64_t stride) {
    count *= dim;
    if (dim == 1) return;
    if (rank > 0 && strides[rank - 1] == dim * stride) {
      dims[rank - 1] *= dim;
      strides[rank - 1] = stride;
      return;
    }
    dims[rank] = dim;
    strides[rank++] = stride;
  }
  int64_t offset(int64_t flat) const {
    int64_t at = 0;
    for (size_t axis = rank; axis-- > 0; flat /= dims[axis])
      at += flat % dims[axis] * strides[axis];
    return at;
  }
  // Of the innermost axis.
  int64_t extent() const { return rank == 0 ? 1 : dims[rank - 1]; }
  int64_t stride() const { return rank == 0 ? 1 : strides[rank - 1]; }
};

// outer: the axes that stay, inner: those that go. The innermost of all has stride 1.
// dst: [outer.count] dense, of the same type; it does not overlap src.
struct ExactReduceArgs {
  ExactReduction kind = ExactReduction::kSum;
  ElementType type = ElementType::kF64;
  const void* src = nullptr;
  void* dst = nullptr;
  Walk outer;
  Walk inner;
};

void exact_reduce(const Context& context, const ExactReduceArgs& args);

}  // namespace tenon::onednn::kernels
