// SPDX-License-Identifier: Apache-2.0
// Powers with one exponent for all numbers, which are products of whole rows.

#include <cmath>
#include <random>

#include "expr_nodes.h"
#include "kernels/exact.h"
#include "kernels/numbers.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class ExactPower : public EachLevel {};

template <class T>
std::vector<T> raised(const Context& context,
                      ElementType type,
                      uint32_t domain,
                      const std::vector<T>& bases,
                      T exponent) {
  const tn_expr_node nodes[] = {input(0), input(1), op(TN_EXPR_POW, 0, 1)};
  const int64_t dims[] = {std::ssize(bases)};
  const ExactEdge edges[] = {{type, {1}}, {type, {0}}};
  const ExactResult result = {2, type};
  ExactPlan plan;
  EXPECT_EQ(plan.make({.nodes = nodes,
                       .domain = domain,
                       .bits = 8 * sizeof(T),
                       .dims = dims,
                       .inputs = edges,
                       .results = {&result, 1}}),
            "");
  std::vector<T> made(bases.size());
  const void* sources[] = {bases.data(), &exponent};
  void* target = made.data();
  plan.run(context, sources, &target);
  return made;
}

// One product after the other, which wraps; below zero only 1 and -1 give anything but 0.
template <class T>
T power(T base, T exponent) {
  const auto number = static_cast<uint64_t>(base);
  if (exponent < 0) return base == 1 ? T(1) : base == T(-1) ? T(exponent % 2 != 0 ? -1 : 1) : T(0);
  uint64_t made = 1;
  for (T i = 0; i < exponent; ++i)
    made *= number;
  return static_cast<T>(made);
}

template <class T>
void check(const Context& context, ElementType type) {
  std::mt19937_64 random(4);
  std::vector<T> bases = {
      0, 1, 2, 3, T(-1), T(-2), std::numeric_limits<T>::max(), std::numeric_limits<T>::min()};
  while (bases.size() < 1301)
    bases.push_back(static_cast<T>(random()));
  const uint32_t domain = std::is_signed_v<T> ? TN_EXPR_DOMAIN_INT : TN_EXPR_DOMAIN_UINT;
  std::vector<T> exponents = {0, 1, 2, 3, 5, 63, 127};
  if (std::is_signed_v<T>) exponents.insert(exponents.end(), {T(-1), T(-2)});
  for (const T exponent : exponents) {
    const std::vector<T> got = raised<T>(context, type, domain, bases, exponent);
    for (size_t i = 0; i < bases.size(); ++i)
      ASSERT_EQ(got[i], power(bases[i], exponent)) << +bases[i] << " to " << +exponent;
  }
}

TEST_P(ExactPower, OfIntegersWraps) {
  check<int64_t>(context_, ElementType::kI64);
  check<uint64_t>(context_, ElementType::kU64);
  check<int32_t>(context_, ElementType::kI32);
  check<uint32_t>(context_, ElementType::kU32);
  check<int16_t>(context_, ElementType::kS16);
  check<uint8_t>(context_, ElementType::kU8);
}

TEST_P(ExactPower, OfDoublesCubesWhatIsNoNumberToo) {
  const std::vector<double> bases = {-0.0,   0.0,      1.25,      -3, 1e200, -1e200,
                                     1e-200, HUGE_VAL, -HUGE_VAL, 7,  NAN};
  const std::vector<double> got =
      raised<double>(context_, ElementType::kF64, TN_EXPR_DOMAIN_FLOAT, bases, 3);
  for (size_t i = 0; i + 1 < bases.size(); ++i) {
    EXPECT_EQ(got[i], std::pow(bases[i], 3)) << bases[i];
    EXPECT_EQ(std::signbit(got[i]), std::signbit(bases[i])) << bases[i];
  }
  EXPECT_TRUE(std::isnan(got.back()));
}

TENON_EACH_LEVEL(ExactPower);

}  // namespace
}  // namespace tenon::onednn::kernels
