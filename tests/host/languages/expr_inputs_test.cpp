// SPDX-License-Identifier: Apache-2.0
// Which inputs an expression says that a node must have, and may have.
#include <gtest/gtest.h>

#include "languages/expr.hpp"

namespace tenon::host {
namespace {

using Needed = std::optional<std::vector<bool>>;

Needed inputs(const char* text) {
  Parsed<Expr> expr = Expr::parse(text);
  return expr ? expr->inputs() : std::nullopt;
}

TEST(ExprInputs, AreNeededWhereNothingAsksForThem) {
  EXPECT_EQ(inputs("x + y"), (Needed{{true, true}}));
  EXPECT_EQ(inputs("has(y) && y > 0"), (Needed{{false, false}}));
  EXPECT_EQ(inputs("x * z"), (Needed{{true, false, true}}));
}

TEST(ExprInputs, MayBeAbsentWhereOneOfThemIsChosen) {
  EXPECT_EQ(inputs("mode == \"left\" ? x : y"), (Needed{{false, false}}));
}

TEST(ExprInputs, AreAnyNumberWhereAllAreTaken) {
  EXPECT_EQ(inputs("fold(add)"), std::nullopt);
  EXPECT_EQ(inputs("x / n_inputs"), std::nullopt);
}

}  // namespace
}  // namespace tenon::host
