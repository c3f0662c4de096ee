// SPDX-License-Identifier: Apache-2.0
// Reductions of every element type over any axes against plain loops.

#include "kernels/exact_reduce.h"

#include <cmath>

#include "tenon/wrapping.hpp"

#include "kernels/numbers.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

// A tensor, and which of its axes go.
struct Shape {
  std::array<int64_t, 4> dims;
  std::array<bool, 4> goes;
};
constexpr Shape kShapes[] = {
    {{1, 1, 1, 1}, {true, true, true, true}},      {{1, 1, 1, 70000}, {true, true, true, true}},
    {{3, 1, 1, 40001}, {false, true, true, true}}, {{1, 1, 900, 3}, {true, true, true, false}},
    {{1, 1, 33000, 5}, {true, true, true, false}}, {{2, 1, 7, 300}, {false, true, true, false}},
    {{5, 1, 3, 129}, {true, false, false, true}},  {{5, 6, 3, 70}, {true, false, true, false}},
    {{1, 1, 40, 2100}, {true, true, true, false}}, {{4, 0, 1, 3}, {false, true, false, false}},
    {{3, 5, 1, 2}, {false, false, false, false}},  {{1, 1, 20000, 40}, {true, true, true, false}},
    {{1, 1, 700, 4}, {false, false, false, true}}, {{1, 1, 301, 16}, {false, false, false, true}},
    {{3, 5, 259, 2}, {false, true, false, true}},  {{1, 1, 257, 17}, {false, false, false, true}},
    {{1, 1, 1000, 4}, {true, true, true, false}},
};
constexpr ExactReduction kKinds[] = {
    ExactReduction::kSum,       ExactReduction::kMean, ExactReduction::kMax,
    ExactReduction::kMin,       ExactReduction::kL1,   ExactReduction::kProd,
    ExactReduction::kSumSquare, ExactReduction::kL2,   ExactReduction::kLogSumExp};

template <class T>
std::vector<T> numbers(int64_t n, bool has_nan) {
  std::mt19937_64 random(static_cast<uint64_t>(n) + 1);
  std::vector<T> out(static_cast<size_t>(n));
  for (T& one : out) {
    if constexpr (std::is_same_v<T, uint8_t> || std::is_integral_v<T>)
      one = static_cast<T>(random());
    else
      one = T(std::uniform_real_distribution<float>(-1, 1)(random));
  }
  if constexpr (kIsReal<T>) {
    if (has_nan && n > 5) out[static_cast<size_t>(n / 2)] = T(std::nanf(""));
  }
  return out;
}

template <class A>
A joined(ExactReduction kind, A total, A x) {
  switch (kind) {
    case ExactReduction::kMax:
      return x > total || x != x ? x : total;
    case ExactReduction::kMin:
      return x < total || x != x ? x : total;
    case ExactReduction::kProd:
      return wrapping_mul(total, x);
    case ExactReduction::kL1:
      return x < A(0) ? wrapping_sub(total, x) : wrapping_add(total, x);
    case ExactReduction::kL2:
    case ExactReduction::kSumSquare:
      return wrapping_add(total, wrapping_mul(x, x));
    default:
      return wrapping_add(total, x);
  }
}

ExactReduceArgs args_of(const Shape& shape, ExactReduction kind, ElementType type) {
  ExactReduceArgs args;
  args.kind = kind;
  args.type = type;
  int64_t stride = shape.dims[0] * shape.dims[1] * shape.dims[2] * shape.dims[3];
  for (size_t axis = 0; axis < 4; ++axis) {
    stride = shape.dims[axis] == 0 ? 0 : stride / shape.dims[axis];
    (shape.goes[axis] ? args.inner : args.outer).add(shape.dims[axis], stride);
  }
  return args;
}

class ExactReduce : public EachLevel {
 protected:
  template <class T, class A>
  void expect_totals(ElementType type, const Shape& shape, ExactReduction kind, bool has_nan) {
    ExactReduceArgs args = args_of(shape, kind, type);
    const int64_t count = args.outer.count * args.inner.count;
    const std::vector<T> x = numbers<T>(count, has_nan);
    std::vector<T> got(static_cast<size_t>(args.outer.count) + 1, T(3));
    args.src = x.data();
    args.dst = got.data();
    exact_reduce(context_, args);
    ASSERT_TRUE(got.back() == T(3));
    for (int64_t i = 0; i < args.outer.count; ++i)
      expect_total<T, A>(args, x, i, got[static_cast<size_t>(i)]);
  }

  template <class T, class A>
  void expect_total(const ExactReduceArgs& args, const std::vector<T>& x, int64_t i, T got) {
    const int64_t n = args.inner.count;
    const bool keeps = args.kind == ExactReduction::kMax || args.kind == ExactReduction::kMin;
    A total = args.kind == ExactReduction::kProd ? A(1) : A(0);
    double magnitudes = 0, exponentials = 0;
    for (int64_t k = 0; k < n; ++k) {
      const T& one = x[static_cast<size_t>(args.outer.offset(i) + args.inner.offset(k))];
      const A number = number_cast<A>(one);
      total = keeps && k == 0 ? number : joined(args.kind, total, number);
      magnitudes += std::abs(static_cast<double>(number));
      if (args.kind == ExactReduction::kLogSumExp)
        exponentials += std::exp(static_cast<double>(number));
    }
    if (n == 0 && keeps) return;
    if constexpr (!kIsReal<T>) {
      if (args.kind == ExactReduction::kLogSumExp || args.kind == ExactReduction::kL2) return;
      if (args.kind == ExactReduction::kMean) total = n == 0 ? A(0) : total / static_cast<A>(n);
      ASSERT_TRUE(got == number_cast<T>(total)) << static_cast<int>(args.kind) << " of " << n;
    } else {
      double want = static_cast<double>(total);
      if (args.kind == ExactReduction::kMean) want /= static_cast<double>(n);
      if (args.kind == ExactReduction::kL2) want = std::sqrt(want);
      if (args.kind == ExactReduction::kLogSumExp) want = std::log(exponentials);
      if (std::isnan(want) || std::isinf(want)) {
        ASSERT_EQ(std::isnan(static_cast<double>(got)), std::isnan(want));
        return;
      }
      // Any order of additions in double, and one rounding to the type.
      const double rounding = sizeof(T) == 8 ? 0 : sizeof(T) == 4 ? 0x1p-24 : 0x1p-8;
      const double bound =
          static_cast<double>(n + 4) * 0x1p-52 * std::max(1.0, magnitudes) +
          std::abs(want) * (rounding + static_cast<double>(n) * 0x1p-52) +
          (sizeof(T) == 2 ? 0x1p-25 : 0);  // halves below 2^-14 are as far apart as those above
      ASSERT_NEAR(static_cast<double>(got), want, bound)
          << static_cast<int>(args.kind) << " of " << n << " numbers of " << sizeof(T);
    }
  }

  template <class T, class A>
  void expect_all(ElementType type) {
    for (const Shape& shape : kShapes)
      for (const ExactReduction kind : kKinds)
        for (const bool has_nan : {false, true})
          if (!has_nan || kIsReal<T>) expect_totals<T, A>(type, shape, kind, has_nan);
  }
};

TEST_P(ExactReduce, OfRealsIsThatOfDoubles) {
  expect_all<double, double>(ElementType::kF64);
  expect_all<float, double>(ElementType::kF32);
  expect_all<Bf16, double>(ElementType::kBf16);
  expect_all<Half, double>(ElementType::kF16);
}

TEST_P(ExactReduce, OfIntegersWraps) {
  expect_all<int64_t, int64_t>(ElementType::kI64);
  expect_all<uint64_t, uint64_t>(ElementType::kU64);
  expect_all<int32_t, int64_t>(ElementType::kI32);
  expect_all<uint32_t, uint64_t>(ElementType::kU32);
  expect_all<int16_t, int64_t>(ElementType::kS16);
  expect_all<uint16_t, uint64_t>(ElementType::kU16);
  expect_all<int8_t, int64_t>(ElementType::kS8);
  expect_all<uint8_t, uint64_t>(ElementType::kU8);
}

TEST_P(ExactReduce, OfTruthValuesIsAnyAndAll) {
  std::array<bool, 300> x = {};
  bool found = true;
  ExactReduceArgs args =
      args_of({{1, 1, 1, 300}, {true, true, true, true}}, ExactReduction::kMax, ElementType::kBool);
  args.src = x.data();
  args.dst = &found;

  exact_reduce(context_, args);
  EXPECT_FALSE(found);
  x[299] = true;
  exact_reduce(context_, args);
  EXPECT_TRUE(found);
  args.kind = ExactReduction::kMin;
  exact_reduce(context_, args);
  EXPECT_FALSE(found);
}

TEST_P(ExactReduce, DoesNotDependOnThreads) {
  for (const Shape& shape : {kShapes[1], kShapes[2], kShapes[4], kShapes[11]}) {
    ExactReduceArgs args = args_of(shape, ExactReduction::kSum, ElementType::kF64);
    const int64_t count = args.outer.count * args.inner.count;
    const std::vector<double> x = numbers<double>(count, false);
    std::vector<double> here(static_cast<size_t>(args.outer.count)), there = here;
    args.src = x.data();
    args.dst = here.data();
    exact_reduce(make_context(GetParam()), args);
    args.dst = there.data();
    exact_reduce(context_, args);
    EXPECT_EQ(here, there);
  }
}

TENON_EACH_LEVEL(ExactReduce);

}  // namespace
}  // namespace tenon::onednn::kernels
