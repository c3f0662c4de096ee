// SPDX-License-Identifier: Apache-2.0
#include "kernels/code/approximation.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tenon::onednn::kernels::code {
namespace {

// What lies past the end is clamped to it: one bit less than 1 there, and 1 + erf(-x) times x grows
// with x instead of being 0.
TEST(OddPieces, EndInOneExactly) {
  struct Case {
    double (*function)(double);
    double end, covered;  // the pieces' steps together
  };
  for (const Case& one : {Case{std::erf, 4.0, 4.0}, Case{std::tanh, 9.125, 8.0}})
    for (const int lanes : {8, 16})
      for (size_t degree = 3; degree <= 9; ++degree) {
        const OddPieces pieces =
            odd_pieces(one.function, lanes, one.covered / lanes, one.end, degree);
        const auto last = static_cast<size_t>(lanes - 1);
        EXPECT_EQ(pieces.middles[last], static_cast<float>(one.end));
        EXPECT_EQ(pieces.coefficients[0][last], 1.0F) << lanes << " pieces of degree " << degree;
      }
}

}  // namespace
}  // namespace tenon::onednn::kernels::code
