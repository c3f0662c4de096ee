// SPDX-License-Identifier: Apache-2.0
// What goes and what is masked around single operators.
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

class Removal : public PruningTest {};

TEST_F(Removal, WhatChannelsAreDividedByIsNotMasked) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value a = conv(edit, x, "a", {8, 3, 1, 1});
    a = node(edit, "Div", {a, weight(edit, "spread", {8, 1, 1}, 3)}, "scaled");
    classify(edit, conv(edit, a, "b", {10, 8, 1, 1}), 10);
  });

  expect_pruned_equals_masked({2, 3, 6, 6});
}

TEST_F(Removal, BothAxesOfASquareMatrixStay) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 4, 6});
    Value wide = node(edit, "MatMul", {x, weight(edit, "w", {6, 5}, 1)}, "wide");
    Value transposed =
        node(edit, "Transpose", {wide}, "transposed", {{"perm", std::vector<int64_t>{0, 2, 1}}});
    Value square = node(edit, "MatMul", {transposed, wide}, "square");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "Det", {square}, "det"))), "");
  });

  ASSERT_EQ(apply("pruner.explain", json::object()), "");

  EXPECT_EQ(barrier("wide"), "det (Det) reads it as a whole");
}

}  // namespace
}  // namespace tenon::test
