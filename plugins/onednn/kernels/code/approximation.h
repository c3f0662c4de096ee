// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tables and polynomials that the intrinsics read, computed once from the functions themselves:
// interpolation at Chebyshev's nodes is within a factor of two of the best polynomial
// (L. N. Trefethen, Approximation Theory and Approximation Practice, chapter 16).

#include <array>
#include <cstddef>
#include <vector>

#include "vector_code.h"

namespace tenon::onednn::kernels::code {

// Coefficients, the constant one first, of the polynomial of this degree that interpolates f.
std::vector<double> interpolate(double (*f)(double), double low, double high, size_t degree);

// An odd function over |x|, in as many pieces as there are lanes: piece i is a polynomial in
// |x| - middles[i], its coefficient k is coefficients[k][i]. The middles are 0, step, 2 step, ...
// but for the last: that is `end`, where the function is 1 in f32, and the last piece is exact
// there. `step` is a power of 2.
struct OddPieces {
  double step;
  double end;
  Table middles;
  std::vector<Table> coefficients;
};
OddPieces odd_pieces(double (*f)(double), int lanes, double step, double end, size_t degree);

// 2^(i/lanes)
Table powers_of_two(int lanes);

}  // namespace tenon::onednn::kernels::code
