// SPDX-License-Identifier: Apache-2.0
#include "kernels/code/code_store.h"

#include <vector>

#include "expr_nodes.h"
#include "kernels/pointwise_program.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

// x * number
class CodeStore : public testing::Test {
 protected:
  void SetUp() override {
    if (best_level() < Level::kAvx2) GTEST_SKIP() << "no machine code here";
  }
  std::shared_ptr<const code::PointwiseCode> scaled(double number,
                                                    code::CodeEdge source = {},
                                                    code::CodeEdge target = {}) {
    const std::vector<tn_expr_node> nodes = {input(0), constant(number), op(TN_EXPR_MUL, 0, 1)};
    const std::vector<uint32_t> results = {2};
    return store_.pointwise(Program(nodes, results), {&source, 1}, {&target, 1}, code::Isa::kAvx2,
                            &why_);
  }
  code::CodeStore store_;
  std::string why_;
};

TEST_F(CodeStore, MakesTheSameCodeOnce) {
  const auto first = scaled(2);
  why_ = "of something else";
  const auto second = scaled(2);

  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first, second);
  EXPECT_EQ(why_, "");
}

TEST_F(CodeStore, HasOtherCodeForWhateverItDependsOn) {
  const std::vector<std::shared_ptr<const code::PointwiseCode>> all = {
      scaled(2),
      scaled(3),
      scaled(2, {.is_repeated = true}),
      scaled(2, {.type = ElementType::kU8, .quant = {0.5F, 3}}),
      scaled(2, {.type = ElementType::kU8, .quant = {0.5F, 4}}),
      scaled(2, {}, {.type = ElementType::kBf16})};

  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_NE(all[i], nullptr);
    for (size_t k = 0; k < i; ++k)
      EXPECT_NE(all[i], all[k]) << i << " and " << k;
  }
}

TEST_F(CodeStore, KeepsNothingThatNobodyHolds) {
  std::weak_ptr<const code::PointwiseCode> before = scaled(2);

  EXPECT_TRUE(before.expired());
  EXPECT_NE(scaled(2), nullptr);
}

}  // namespace
}  // namespace tenon::onednn::kernels
