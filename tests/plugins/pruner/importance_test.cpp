// SPDX-License-Identifier: Apache-2.0
#include "tenon/role/importance.h"

#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;

class Importance : public PruningTest {
 protected:
  // Two channels: a filter [2][3] and a reader [1][2][2], of which the last entry is nobody's.
  std::vector<double> score(std::string_view id, const json& options = {}, uint64_t index = 0) {
    auto made = make("tenon.importance/1", id, options);
    EXPECT_TRUE(made.ok());
    const float filter[] = {1, -2, 2, 0, 3, 0}, reader[] = {4, 0, -5, 12};
    const int64_t swapped[] = {1, 0};
    tn_group_member makes{sizeof makes, TN_MEMBER_MAKES, {},     {}, {}, 1, 2, 3,
                          filter,       nullptr,         nullptr};
    tn_group_member reads{sizeof reads, TN_MEMBER_READS, {},     {}, {}, 1, 2, 2,
                          reader,       nullptr,         swapped};
    const tn_group_member* members[] = {&makes, &reads};
    tn_channel_group group{sizeof group, 0, str("layer"), index, 2, 2, members};
    std::vector<double> out{-1, -1};
    const auto* table = made->table<tn_importance>();
    EXPECT_EQ(text_of(Status(table->score(made->self(), &group, out.data()))), "");
    return out;
  }
};

TEST_F(Importance, L1SumsMagnitudesOverAllLayersOfAChannel) {
  EXPECT_THAT(score("pruner.importance.l1"), ElementsAre(5 + 17, 3 + 4));
  EXPECT_THAT(score("pruner.importance.l1", {{"reads", false}}), ElementsAre(5, 3));
}

TEST_F(Importance, L2IsTheRootOfSquares) {
  EXPECT_THAT(score("pruner.importance.l2", {{"reads", false}}), ElementsAre(3, 3));
  EXPECT_THAT(score("pruner.importance.l2"), ElementsAre(std::sqrt(9.0 + 169), 5));
}

TEST_F(Importance, RandomScoresComeFromSeedAndGroup) {
  auto first = score("pruner.importance.random", {{"seed", 1}});

  EXPECT_EQ(score("pruner.importance.random", {{"seed", 1}}), first);
  EXPECT_NE(score("pruner.importance.random", {{"seed", 2}}), first);
  EXPECT_NE(score("pruner.importance.random", {{"seed", 1}}, 7), first);
}

TEST_F(Importance, TaylorSquaresTheGradientByAGate) {
  auto made = make("tenon.importance/1", "pruner.importance.taylor");
  ASSERT_TRUE(made.ok());
  const float data[] = {1, -2, 4, 3}, gradient[] = {2, 1, -1, 1};
  tn_group_member reads{sizeof reads, TN_MEMBER_READS, {},     {}, {}, 1, 2, 2,
                        data,         gradient,        nullptr};
  tn_group_member makes = reads;  // beside a reader it does not count
  makes.kind = TN_MEMBER_MAKES;
  makes.gradient = nullptr;
  const tn_group_member* members[] = {&makes, &reads};
  tn_channel_group group{sizeof group, 0, str("layer"), 0, 2, 2, members};
  std::vector<double> out(2);
  const auto* table = made->table<tn_importance>();
  uint32_t needs = 0;

  ASSERT_EQ(text_of(Status(table->needs(made->self(), &needs))), "");
  ASSERT_EQ(text_of(Status(table->score(made->self(), &group, out.data()))), "");

  EXPECT_EQ(needs, TN_IMPORTANCE_GRADIENTS);
  EXPECT_THAT(out, ElementsAre(0, 1));  // (2 - 2)^2, (-4 + 3)^2
}

TEST_F(Importance, WeightsThatAreNotFiniteAreRefused) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 2});
    auto w = edit.constant<float>(TN_F32, {2, 2}, {1, 2, NAN, 4}, "w");
    Value h = node(edit, "Gemm", {x, *w}, "fc1");
    ASSERT_EQ(
        text_of(edit.output("y", node(edit, "Gemm", {h, weight(edit, "v", {2, 1}, 1)}, "fc2"))),
        "");
  });

  EXPECT_THAT(apply("pruner.structured", {{"ratio", 0.5}}),
              testing::HasSubstr("expected a finite score for each channel of fc1, got nan"));
}

}  // namespace
}  // namespace tenon::test
