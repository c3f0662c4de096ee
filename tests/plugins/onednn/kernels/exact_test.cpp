// SPDX-License-Identifier: Apache-2.0
// Integer programs against the same sums in 128 bits, cut to the type's width.

#include "kernels/exact.h"

#include <bit>
#include <cmath>
#include <functional>

#include "exact_program.h"
#include "expr_nodes.h"
#include "kernels/numbers.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

using Wide = __int128;

class Exact : public EachLevel {};

struct Formula {
  uint32_t op;
  std::function<Wide(Wide, Wide)> want;
};
Wide product(Wide a, Wide b) {
  using Bits = unsigned __int128;  // which wrap
  return static_cast<Wide>(static_cast<Bits>(a) * static_cast<Bits>(b));
}
// By its definition, cut to 64 bits in each step; 0 and 1 / a are whole for a of 1 and -1 alone.
Wide power(Wide base, Wide exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent /= 2, factor *= factor)
    if (exponent % 2 != 0) result *= factor;
  return static_cast<Wide>(result);
}

const Formula kFormulas[] = {
    {TN_EXPR_ADD, [](Wide a, Wide b) { return a + b; }},
    {TN_EXPR_SUB, [](Wide a, Wide b) { return a - b; }},
    {TN_EXPR_MUL, product},
    {TN_EXPR_DIV, [](Wide a, Wide b) { return b == 0 ? 0 : a / b; }},
    {TN_EXPR_MIN, [](Wide a, Wide b) { return std::min(a, b); }},
    {TN_EXPR_MAX, [](Wide a, Wide b) { return std::max(a, b); }},
    {TN_EXPR_EQ, [](Wide a, Wide b) { return Wide(a == b); }},
    {TN_EXPR_LT, [](Wide a, Wide b) { return Wide(a < b); }},
    {TN_EXPR_BITXOR, [](Wide a, Wide b) { return a ^ b; }},
    {TN_EXPR_MOD, [](Wide a, Wide b) { return b == 0 ? 0 : ((a % b) + b) % b; }},
    {TN_EXPR_FMOD, [](Wide a, Wide b) { return b == 0 ? 0 : a % b; }},
    {TN_EXPR_POW, power},
};

template <class T>
std::vector<T> numbers(int64_t n, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> out(static_cast<size_t>(n));
  constexpr int64_t kSmall[] = {0, 1, 2, 3, 4, -1, -7, 63, 64, 70};
  for (size_t i = 0; i < out.size(); ++i)  // few enough that some are equal, and both ends
    out[i] = i % 7 == 0   ? std::numeric_limits<T>::max() - static_cast<T>(i % 2)
             : i % 5 == 0 ? std::numeric_limits<T>::min()
                          : static_cast<T>(kSmall[random() % std::size(kSmall)]);
  return out;
}

// A column against a row: [n_rows, 1] and [1, n_columns].
template <class T, class Result = T>
void check(const Context& context,
           const Formula& formula,
           ElementType type,
           ElementType result,
           int64_t n_rows,
           int64_t n_columns) {
  const std::vector<T> left = numbers<T>(n_rows, 1), right = numbers<T>(n_columns, 2);
  const tn_expr_node nodes[] = {input(0), input(1), op(formula.op, 0, 1)};
  const int64_t dims[] = {n_rows, n_columns};
  const ExactEdge edges[] = {{type, {1, 0}}, {type, {0, 1}}};
  std::vector<Result> got(static_cast<size_t>(n_rows * n_columns) + 1, Result(1));
  run_exact<T>(context, nodes, dims, edges, {left.data(), right.data()}, result, got.data());
  for (int64_t i = 0; i < n_rows * n_columns; ++i) {
    const Wide want = formula.want(left[static_cast<size_t>(i / n_columns)],
                                   right[static_cast<size_t>(i % n_columns)]);
    ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<Result>(static_cast<T>(want)))
        << "op " << formula.op << ", " << n_columns << " columns, at " << i;
  }
  EXPECT_EQ(got.back(), Result(1));
}

TEST_P(Exact, WrapsAndComparesAsTheTypeDoes) {
  for (const Formula& formula : kFormulas) {
    for (int64_t columns : {1, 3, 128, 257, 300, 2500}) {
      check<int64_t>(context_, formula, ElementType::kI64, ElementType::kI64, 5, columns);
      check<uint64_t>(context_, formula, ElementType::kU64, ElementType::kU64, 3, columns);
      check<int32_t>(context_, formula, ElementType::kI32, ElementType::kI32, 3, columns);
      check<uint32_t>(context_, formula, ElementType::kU32, ElementType::kU32, 3, columns);
      check<uint8_t>(context_, formula, ElementType::kU8, ElementType::kU8, 3, columns);
      check<int8_t>(context_, formula, ElementType::kS8, ElementType::kS8, 3, columns);
      check<uint8_t, int64_t>(context_, formula, ElementType::kU8, ElementType::kI64, 3, columns);
      check<int16_t>(context_, formula, ElementType::kS16, ElementType::kS16, 3, columns);
    }
  }
}

TEST_P(Exact, AComparisonOfWideIntegersIsABool) {
  const Formula equal = kFormulas[6];
  struct Byte {  // std::vector<bool> has no data()
    uint8_t value;
    Byte(int64_t number = 0) : value(number != 0) {}
    bool operator==(const Byte&) const = default;
  };
  for (int64_t columns : {2, 64, 257})
    check<int64_t, Byte>(context_, equal, ElementType::kI64, ElementType::kBool, 4, columns);
}

// Counts of as many bits as there are, and more: zeros come in, or the sign.
TEST_P(Exact, ShiftsByAnyCount) {
  const std::vector<int64_t> x = {5, -5, 1, -1}, counts = {0, 1, 63, 64, 70, -1};
  for (uint32_t code : {uint32_t{TN_EXPR_SHL}, uint32_t{TN_EXPR_SHR}}) {
    const tn_expr_node nodes[] = {input(0), input(1), op(code, 0, 1)};
    const int64_t dims[] = {4, 6};
    const ExactEdge edges[] = {{ElementType::kI64, {1, 0}}, {ElementType::kI64, {0, 1}}};
    std::vector<int64_t> got(24);
    run_exact<int64_t>(context_, nodes, dims, edges, {x.data(), counts.data()}, ElementType::kI64,
                       got.data());
    for (size_t i = 0; i < got.size(); ++i) {
      const int64_t a = x[i / 6], count = counts[i % 6];
      const bool is_past = count < 0 || count > 63;
      const int64_t left = is_past ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << count);
      const int64_t right = is_past ? (a < 0 ? -1 : 0) : a >> count;
      EXPECT_EQ(got[i], code == TN_EXPR_SHL ? left : right) << a << " by " << count;
    }
  }
}

TEST_P(Exact, SelectsNegatesAndInverts) {
  const std::vector<int32_t> x = {0, 1, -7, std::numeric_limits<int32_t>::min()};
  const tn_expr_node nodes[] = {input(0), op(TN_EXPR_NEG, 0), op(TN_EXPR_ABS, 0),
                                op(TN_EXPR_BITNOT, 0), op(TN_EXPR_SELECT, 0, 1, 3)};
  for (size_t last : {size_t{2}, size_t{3}, size_t{4}, size_t{5}}) {
    const int64_t dims[] = {4};
    const ExactEdge edges[] = {{ElementType::kI32, {1}}};
    std::vector<int32_t> got(4);
    run_exact<int32_t>(context_, std::span(nodes).first(last), dims, edges, {x.data()},
                       ElementType::kI32, got.data());
    for (size_t i = 0; i < got.size(); ++i) {
      const int64_t a = x[i], minus = static_cast<int32_t>(-a);
      const int64_t want[] = {minus, static_cast<int32_t>(a < 0 ? -a : a), ~a, a != 0 ? minus : ~a};
      EXPECT_EQ(got[i], want[last - 2]) << "node " << last << " of " << a;
    }
  }
}

// Of an input that no node reads, as the absent bound of a Clip, the type says nothing.
TEST(ExactPlan, TakesAnyTypeThatIsNotRead) {
  const tn_expr_node nodes[] = {input(0), op(TN_EXPR_NEG, 0)};
  const int64_t dims[] = {4};
  const ExactEdge edges[] = {{ElementType::kI64, {1}}, {ElementType::kF32, {0}}};
  const ExactResult result = {1, ElementType::kI64};
  ExactPlan plan;
  EXPECT_EQ(plan.make({.nodes = nodes,
                       .domain = TN_EXPR_DOMAIN_INT,
                       .dims = dims,
                       .inputs = edges,
                       .results = {&result, 1}}),
            "");
}

TEST_P(Exact, ReadsWithAStride) {
  const std::vector<int32_t> x = numbers<int32_t>(2000, 3);
  const tn_expr_node nodes[] = {input(0), op(TN_EXPR_NEG, 0)};
  const int64_t dims[] = {600};
  const ExactEdge edges[] = {{ElementType::kI32, {3}}};
  std::vector<int64_t> got(600);
  run_exact<int32_t>(context_, nodes, dims, edges, {x.data()}, ElementType::kI64, got.data());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], static_cast<int32_t>(-static_cast<int64_t>(x[3 * i]))) << i;
}

// A double beside the middle of two halves is not rounded to that middle first.
TEST_P(Exact, StoresHalvesWithOneRounding) {
  std::vector<double> x = {0.0,      -0.0,    65504,   65519.999999999, 65520, -1e300,
                           HUGE_VAL, 0x1p-24, 0x1p-25, 1e-30,           -5e-8, 4e-324};
  std::mt19937_64 random(6);
  for (uint16_t bits = 0; bits < 0x7c00; bits = static_cast<uint16_t>(bits + 7)) {
    const double low = std::bit_cast<Half>(bits);
    const double high = std::bit_cast<Half>(static_cast<uint16_t>(bits + 1));
    const double middle = (low + high) / 2;
    for (const double one : {middle, std::nextafter(middle, 0), std::nextafter(middle, 1e9)})
      x.push_back(random() % 2 == 0 ? one : -one);
  }
  const tn_expr_node nodes[] = {input(0)};
  const int64_t dims[] = {static_cast<int64_t>(x.size())};
  const ExactEdge edges[] = {{ElementType::kF64, {1}}};
  std::vector<Half> got(x.size());
  run_exact<double>(context_, nodes, dims, edges, {x.data()}, ElementType::kF16, got.data());
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint16_t>(got[i]), std::bit_cast<uint16_t>(static_cast<Half>(x[i])))
        << x[i];
}

// The bits that number_cast makes.
template <class T, class Real>
void expect_casts_of(const Context& context, ElementType type, ElementType from) {
  std::vector<Real> x = {0, Real(-0.0), Real(0.9), Real(-0.9), 1.5, -254, Real(255.99), 32768};
  for (const Real edge : {Real(0x1p31), Real(0x1p32), Real(0x1p63), Real(0x1p64), Real(1e38)})
    for (const Real one : {edge, -edge, std::nextafter(edge, Real(0)),
                           -std::nextafter(edge, Real(0)), edge * HUGE_VALF})
      x.push_back(one);
  x.push_back(NAN);
  x.resize(901, -3.75);
  const tn_expr_node nodes[] = {input(0)};
  const int64_t dims[] = {static_cast<int64_t>(x.size())};
  const ExactEdge edges[] = {{from, {1}}};
  std::vector<T> got(x.size());
  run_exact<double>(context, nodes, dims, edges, {x.data()}, type, got.data());
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(got[i], number_cast<T>(x[i])) << x[i];
}
template <class T>
void expect_casts(const Context& context, ElementType type) {
  expect_casts_of<T, double>(context, type, ElementType::kF64);
  expect_casts_of<T, float>(context, type, ElementType::kF32);
}

TEST_P(Exact, StoresRealsAsIntegers) {
  expect_casts<uint8_t>(context_, ElementType::kU8);
  expect_casts<int8_t>(context_, ElementType::kS8);
  expect_casts<uint16_t>(context_, ElementType::kU16);
  expect_casts<int16_t>(context_, ElementType::kS16);
  expect_casts<uint32_t>(context_, ElementType::kU32);
  expect_casts<int32_t>(context_, ElementType::kI32);
  expect_casts<uint64_t>(context_, ElementType::kU64);
  expect_casts<int64_t>(context_, ElementType::kI64);
}

// NaN is not 0.
TEST_P(Exact, JoinsTruthsOfDoubles) {
  const std::vector<double> x = {0.0, -0.0, 2, NAN, -HUGE_VAL}, y = {0.0, 1, NAN};
  const int64_t dims[] = {5, 3};
  const ExactEdge edges[] = {{ElementType::kF64, {1, 0}}, {ElementType::kF64, {0, 1}}};
  for (const uint32_t code : {uint32_t{TN_EXPR_AND}, uint32_t{TN_EXPR_OR}}) {
    const tn_expr_node nodes[] = {input(0), input(1), op(code, 0, 1)};
    std::vector<double> got(15);
    run_exact<double>(context_, nodes, dims, edges, {x.data(), y.data()}, ElementType::kF64,
                      got.data());
    for (size_t i = 0; i < got.size(); ++i) {
      const bool a = x[i / 3] != 0, b = y[i % 3] != 0;
      EXPECT_EQ(got[i], (code == TN_EXPR_AND ? a && b : a || b) ? 1 : 0) << x[i / 3] << y[i % 3];
    }
  }
}

TEST_P(Exact, ReadsHalvesWithAStride) {
  std::vector<Half> x(1500);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<Half>(0.37F * static_cast<float>(i) - 100);
  const tn_expr_node nodes[] = {input(0)};
  const int64_t dims[] = {500};
  for (int64_t stride : {1, 3}) {
    const ExactEdge edges[] = {{ElementType::kF16, {stride}}};
    std::vector<int64_t> got(500);
    run_exact<double>(context_, nodes, dims, edges, {x.data()}, ElementType::kI64, got.data());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], static_cast<int64_t>(x[static_cast<size_t>(stride) * i]));
  }
}

// Against the C library's functions, also where they are infinite or no number.
TEST_P(Exact, FunctionsOfDoublesAreTheCLibrarysWithinFourUnits) {
  using Function = double (*)(double);
  const std::pair<uint32_t, Function> kFunctions[] = {
      {TN_EXPR_EXP, std::exp},     {TN_EXPR_EXPM1, std::expm1}, {TN_EXPR_LOG, std::log},
      {TN_EXPR_LOG1P, std::log1p}, {TN_EXPR_SQRT, std::sqrt},   {TN_EXPR_ERF, std::erf},
      {TN_EXPR_TANH, std::tanh},   {TN_EXPR_SIN, std::sin},     {TN_EXPR_COS, std::cos},
      {TN_EXPR_TAN, std::tan},     {TN_EXPR_ASIN, std::asin},   {TN_EXPR_ACOS, std::acos},
      {TN_EXPR_ATAN, std::atan},   {TN_EXPR_SINH, std::sinh},   {TN_EXPR_COSH, std::cosh},
      {TN_EXPR_ASINH, std::asinh}, {TN_EXPR_ACOSH, std::acosh}, {TN_EXPR_ATANH, std::atanh}};
  std::vector<double> x = {0.0,  -0.0, 1.0,    -1.0,    0.5,     -0.5,   1e-300, -1e-300,  4e-324,
                           1e-9, 20.0, -745.1, 709.7,   710.0,   1e10,   1e300,  -1e300,   HUGE_VAL,
                           NAN,  3.14, 6.28,   1.57079, -37.519, 0.9999, 1.0001, -HUGE_VAL};
  std::mt19937_64 random(5);
  for (std::normal_distribution<double> normal(0, 2); x.size() < 1003;)
    x.push_back(normal(random));
  const int64_t dims[] = {static_cast<int64_t>(x.size())};
  const ExactEdge edges[] = {{ElementType::kF64, {1}}};
  for (const auto& [code, function] : kFunctions) {
    const tn_expr_node nodes[] = {input(0), op(code, 0)};
    std::vector<double> got(x.size());
    run_exact<double>(context_, nodes, dims, edges, {x.data()}, ElementType::kF64, got.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = function(x[i]);
      const double unit = std::nextafter(std::fabs(want), HUGE_VAL) - std::fabs(want);
      const bool is_same = got[i] == want || (got[i] != got[i] && want != want);
      EXPECT_TRUE(is_same || std::fabs(got[i] - want) <= 4 * unit)
          << "opcode " << code << " of " << x[i] << ": expected " << want << ", got " << got[i];
    }
  }
}

// The second result is read by nobody inside; the target of the first is the operand itself.
TEST_P(Exact, HasSeveralResultsAndMayOverwriteAnOperand) {
  std::vector<double> x = {1.5, -2, 3, 0.25, 7}, second(5);
  const std::vector<double> was = x;
  const tn_expr_node nodes[] = {input(0), op(TN_EXPR_MUL, 0, 0), op(TN_EXPR_NEG, 1)};
  const int64_t dims[] = {5};
  const ExactEdge edges[] = {{ElementType::kF64, {1}}};
  const ExactResult results[] = {{2, ElementType::kF64}, {1, ElementType::kF64}};
  ExactPlan plan;
  ASSERT_EQ(plan.make({.nodes = nodes,
                       .domain = TN_EXPR_DOMAIN_FLOAT,
                       .dims = dims,
                       .inputs = edges,
                       .results = results}),
            "");
  const void* source = x.data();
  void* targets[] = {x.data(), second.data()};
  plan.run(context_, &source, targets);
  for (size_t i = 0; i < was.size(); ++i) {
    EXPECT_EQ(x[i], -was[i] * was[i]);
    EXPECT_EQ(second[i], was[i] * was[i]);
  }
}

// The first result lies where the comparisons read; NaN is equal to nothing.
TEST_P(Exact, ComparesDoublesBeforeTheyAreOverwritten) {
  constexpr uint32_t kOps[] = {TN_EXPR_EQ, TN_EXPR_NE, TN_EXPR_LT,
                               TN_EXPR_LE, TN_EXPR_GT, TN_EXPR_GE};
  for (const int64_t n : {3, 300}) {
    std::vector<double> x(static_cast<size_t>(n));
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = i % 7 == 6 ? std::nan("") : static_cast<double>(i % 5) - 2;
    const std::vector<double> was = x;
    std::vector<tn_expr_node> nodes = {input(0), op(TN_EXPR_NEG, 0), {TN_EXPR_CONST, 0, 0, 0, 1}};
    std::vector<ExactResult> results = {{1, ElementType::kF64}};
    std::vector<std::vector<uint8_t>> found(6, std::vector<uint8_t>(x.size(), 9));
    const void* source = x.data();
    std::vector<void*> targets = {x.data()};
    for (uint32_t i = 0; i < 6; ++i) {
      nodes.push_back(op(kOps[i], 0, 2));
      results.push_back({3 + i, ElementType::kBool});
      targets.push_back(found[i].data());
    }
    const ExactEdge edges[] = {{ElementType::kF64, {1}}};
    ExactPlan plan;
    ASSERT_EQ(plan.make({.nodes = nodes,
                         .domain = TN_EXPR_DOMAIN_FLOAT,
                         .dims = {&n, 1},
                         .inputs = edges,
                         .results = results}),
              "");
    plan.run(context_, &source, targets.data());
    for (size_t i = 0; i < was.size(); ++i) {
      const double v = was[i];
      const bool want[] = {v == 1, v != 1, v < 1, v <= 1, v > 1, v >= 1};
      for (size_t k = 0; k < 6; ++k)
        ASSERT_EQ(found[k][i], want[k] ? 1 : 0) << k << " of " << v;
    }
  }
}

TEST(ExactPlan, RefusesRealsAmongIntegers) {
  const tn_expr_node nodes[] = {input(0), op(TN_EXPR_NEG, 0)};
  const int64_t dims[] = {4};
  const ExactEdge edges[] = {{ElementType::kF32, {1}}};
  ExactPlan plan;
  EXPECT_NE(plan.make({.nodes = nodes,
                       .domain = TN_EXPR_DOMAIN_INT,
                       .dims = dims,
                       .inputs = edges,
                       .results = {}}),
            "");
}

TENON_EACH_LEVEL(Exact);

}  // namespace
}  // namespace tenon::onednn::kernels
