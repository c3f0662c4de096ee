// SPDX-License-Identifier: Apache-2.0
// Functions whose result is stored in bf16, over all numbers of bf16: within half the distance of
// two neighbours, which rounding takes, and a quarter more. Denormals may become 0.

#include <cstring>
#include <numeric>

#include "expr_nodes.h"
#include "kernels/pointwise.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

constexpr uint32_t kAll = 65536;
constexpr double kLargest = 3.38e38;
constexpr double kLeast = 1.2e-38;

class PointwiseInBf16 : public EachLevel {
 protected:
  static double real(uint32_t half) {
    const uint32_t wide = half << 16;
    float made = 0;
    std::memcpy(&made, &wide, 4);
    return static_cast<double>(made);
  }

  std::vector<uint16_t> results(uint32_t opcode) const {
    std::vector<uint16_t> x(kAll);
    std::iota(x.begin(), x.end(), uint16_t{0});
    const std::vector<tn_expr_node> nodes = {input(0), op(opcode, 0)};
    const std::vector<uint32_t> wanted = {1};
    const std::vector<int64_t> dims = {kAll};
    const std::vector<PointwiseEdge> edges = {{ElementType::kBf16, {}, {1}}};
    PointwisePlan plan;
    EXPECT_EQ(plan.make({nodes, wanted, dims, edges, edges}), "");
    std::vector<uint16_t> y(kAll);
    const void* source = x.data();
    void* target = y.data();
    plan.run(context_, {&source, 1}, {&target, 1});
    return y;
  }

  void expect_rounded(uint32_t opcode, double (*function)(double)) const {
    const std::vector<uint16_t> y = results(opcode);
    for (uint32_t i = 0; i < kAll; ++i) {
      const double want = function(real(i));
      const double got = real(y[i]);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(got)) << real(i);
      } else if (want > kLargest) {
        ASSERT_GT(got, kLargest) << real(i);
      } else if (std::fabs(want) < kLeast) {
        ASSERT_LE(std::fabs(got), 2 * kLeast) << real(i);
      } else {
        ASSERT_LE(std::fabs(got - want), 0.75 * std::ldexp(1.0, std::ilogb(want) - 7)) << real(i);
      }
    }
  }
};

TEST_P(PointwiseInBf16, Exp) {
  expect_rounded(TN_EXPR_EXP, std::exp);
}
TEST_P(PointwiseInBf16, Erf) {
  expect_rounded(TN_EXPR_ERF, std::erf);
}

TENON_EACH_LEVEL(PointwiseInBf16);

}  // namespace
}  // namespace tenon::onednn::kernels
