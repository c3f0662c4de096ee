// SPDX-License-Identifier: Apache-2.0
#include "approximation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

namespace tenon::onednn::kernels::code {

namespace {

using Function = std::function<double(double)>;

// Newton's divided differences, then multiplied out from the innermost bracket.
std::vector<double> polynomial_through(const Function& f, double low, double high, size_t degree) {
  const size_t n = degree + 1;
  std::vector<double> at(n);
  std::vector<double> difference(n);
  for (size_t i = 0; i < n; ++i) {
    const double turn = (static_cast<double>(i) + 0.5) / static_cast<double>(n);
    at[i] = (low + high) / 2 + (high - low) / 2 * std::cos(turn * std::numbers::pi);
    difference[i] = f(at[i]);
  }
  for (size_t order = 1; order < n; ++order) {
    for (size_t i = n - 1; i >= order; --i) {
      difference[i] = (difference[i] - difference[i - 1]) / (at[i] - at[i - order]);
    }
  }
  std::vector<double> made = {difference[degree]};
  for (size_t i = degree; i-- > 0;) {  // made = made * (x - at[i]) + difference[i]
    made.push_back(made.back());
    for (size_t k = made.size() - 2; k > 0; --k)
      made[k] = made[k - 1] - at[i] * made[k];
    made[0] = difference[i] - at[i] * made[0];
  }
  return made;
}

}  // namespace

std::vector<double> interpolate(double (*f)(double), double low, double high, size_t degree) {
  return polynomial_through(f, low, high, degree);
}

OddPieces odd_pieces(double (*f)(double), int lanes, double step, double end, size_t degree) {
  OddPieces made{step, end, {}, std::vector<Table>(degree + 1)};
  const auto n_pieces = static_cast<size_t>(lanes);
  for (size_t i = 0; i < n_pieces; ++i) {
    const bool is_last = i + 1 == n_pieces;
    const double begin = (static_cast<double>(i) - 0.5) * step;
    const double middle = is_last ? end : static_cast<double>(i) * step;
    std::vector<double> piece;
    if (i == 0) {  // f(d) / d times d, so that the error is relative
      piece = polynomial_through([f](double d) { return f(d) / d; }, 0, step / 2, degree - 1);
      piece.insert(piece.begin(), 0.0);
    } else {
      const double high = is_last ? end : begin + step;
      piece = polynomial_through([&](double d) { return f(middle + d); }, begin - middle,
                                 high - middle, degree);
    }
    // What was interpolated may be off by the last bit, and 1 + erf(-x) times x is no longer 0.
    if (is_last) piece[0] = f(end);
    made.middles[i] = static_cast<float>(middle);
    for (size_t k = 0; k <= degree; ++k)
      made.coefficients[k][i] = static_cast<float>(piece[k]);
  }
  return made;
}

Table powers_of_two(int lanes) {
  Table made{};
  for (int i = 0; i < lanes; ++i)
    made[static_cast<size_t>(i)] = static_cast<float>(std::exp2(static_cast<double>(i) / lanes));
  return made;
}

}  // namespace tenon::onednn::kernels::code
