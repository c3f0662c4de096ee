// SPDX-License-Identifier: Apache-2.0
// Groups that run as one list give what each gives alone, however the list is cut.

#include "kernels/pointwise_list.h"

#include "expr_nodes.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class ListOfGroups : public EachLevel {
 protected:
  // x * y + 0.5 of n numbers each, y one number for all; or exp(-x) of rows of 100 with gaps.
  void add(int64_t n, bool has_rows) {
    const std::vector<int64_t> dims =
        has_rows ? std::vector<int64_t>{n / 100, 100} : std::vector{n};
    auto edge = [&](std::vector<int64_t> strides) {
      return PointwiseEdge{ElementType::kF32, {}, std::move(strides)};
    };
    const std::vector<tn_expr_node> product = {input(0), input(1), op(TN_EXPR_MUL, 0, 1),
                                               constant(0.5), op(TN_EXPR_ADD, 2, 3)};
    const std::vector<tn_expr_node> decay = {input(0), op(TN_EXPR_NEG, 0), op(TN_EXPR_EXP, 1)};
    const std::vector<PointwiseEdge> of_rows = {edge({110, 1})};
    const std::vector<PointwiseEdge> of_product = {edge({1}), edge({0})};
    const std::vector<tn_expr_node>& nodes = has_rows ? decay : product;
    const std::vector<PointwiseEdge>& sources = has_rows ? of_rows : of_product;
    const PointwiseEdge target = has_rows ? edge({100, 1}) : edge({1});
    const uint32_t result = static_cast<uint32_t>(nodes.size()) - 1;
    auto plan = std::make_shared<PointwisePlan>();
    ASSERT_EQ(plan->make({nodes, {&result, 1}, dims, sources, {&target, 1}}), "");
    const uint64_t count = static_cast<uint64_t>(n);
    given_.push_back(uniform(count * 11 / 10, -2, 2, static_cast<uint32_t>(n)));
    expected_.emplace_back(count, -9.0F);
    got_.emplace_back(count, -9.0F);
    std::vector<const void*> in = {given_.back().data()};
    if (!has_rows) in.push_back(&factor_);
    void* out = expected_.back().data();
    plan->run(context_, in, {&out, 1});
    list_.add({plan, in.size(), 1});
    for (const void* source : in)
      pointers_.push_back(const_cast<void*>(source));
    pointers_.push_back(got_.back().data());
  }

  PointwiseList list_;
  std::vector<void*> pointers_;
  std::vector<std::vector<float>> given_, expected_, got_;
  const float factor_ = 1.5F;
};

TEST_P(ListOfGroups, GivesWhatEachGivesAlone) {
  for (int64_t n : {7, 5000, 1, 400, 130000, 3, 0, 65537})
    add(n, n % 100 == 0);
  list_.run(context_, pointers_.data());
  EXPECT_EQ(got_, expected_);
}

// As many threads would cut it: each piece smaller than most members.
TEST_P(ListOfGroups, MayBeCutAnywhere) {
  for (int64_t n : {40000, 9000, 123, 70001})
    add(n, n % 100 == 0);
  auto in_sevenths = [](void*, uint64_t n, uint64_t, Parallel::Body body, void* arg) {
    for (uint64_t piece = 0; piece < 7; ++piece)
      body(arg, n * piece / 7, n * (piece + 1) / 7);
  };
  Context context = context_;
  context.parallel = {in_sevenths, nullptr};
  list_.run(context, pointers_.data());
  EXPECT_EQ(got_, expected_);
}

TENON_EACH_LEVEL(ListOfGroups);

}  // namespace
}  // namespace tenon::onednn::kernels
