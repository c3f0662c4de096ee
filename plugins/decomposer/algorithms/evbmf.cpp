// SPDX-License-Identifier: Apache-2.0
#include "algorithms/evbmf.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tenon::decomposer {
namespace {

// The paper's quantities for the short side L and the long side M.
class Problem {
 public:
  Problem(const Vector& values, int64_t rows, int64_t cols)
      : short_side_(static_cast<double>(std::min(rows, cols))),
        long_side_(static_cast<double>(std::max(rows, cols))),
        squares_(values.head(std::min(rows, cols)).cwiseAbs2()) {
    alpha_ = short_side_ / long_side_;
    double tau = 2.5129 * std::sqrt(alpha_);
    x_limit_ = (1 + tau) * (1 + alpha_ / tau);
  }

  double upper() const { return squares_.sum() / (short_side_ * long_side_); }
  // Noise cannot be less than what the values beyond the largest possible rank leave.
  double lower() const {
    auto n = squares_.size();
    auto most = static_cast<int64_t>(std::ceil(short_side_ / (1 + alpha_))) - 1;
    int64_t first = std::clamp<int64_t>(most, 0, n - 1);
    double mean = squares_.tail(n - first).mean() / long_side_;
    return std::max(squares_[first] / (long_side_ * x_limit_), mean);
  }

  // The negative log evidence but for a constant, as a function of the noise's variance.
  double free_energy(double variance) const {
    double sum = 0;
    for (double square : squares_) {
      double x = square / (long_side_ * variance);
      if (x <= x_limit_) {
        sum += x - std::log(std::max(x, 1e-300));
        continue;
      }
      double t = x - (1 + alpha_);
      double tau = 0.5 * (t + std::sqrt(t * t - 4 * alpha_));
      sum += x - tau + std::log((tau + 1) / x) + alpha_ * std::log(tau / alpha_ + 1);
    }
    return sum;
  }

  int64_t rank(double variance) const {
    double threshold = long_side_ * variance * x_limit_;
    return (squares_.array() > threshold).count();
  }

 private:
  double short_side_, long_side_, alpha_, x_limit_;
  Vector squares_;
};

// Golden section over the logarithm: the bounds may be decades apart.
template <class F>
double least(double low, double high, F&& f) {
  constexpr double kGolden = 0.6180339887498949;
  double a = std::log(low), b = std::log(high);
  double c = b - kGolden * (b - a), d = a + kGolden * (b - a);
  double at_c = f(std::exp(c)), at_d = f(std::exp(d));
  for (int i = 0; i < 100 && b - a > 1e-10; ++i) {
    if (at_c < at_d) {
      b = std::exchange(d, c);
      at_d = std::exchange(at_c, 0);
      c = b - kGolden * (b - a);
      at_c = f(std::exp(c));
    } else {
      a = std::exchange(c, d);
      at_c = std::exchange(at_d, 0);
      d = a + kGolden * (b - a);
      at_d = f(std::exp(d));
    }
  }
  return std::exp((a + b) / 2);
}

}  // namespace

Evbmf evbmf(const Vector& values, int64_t rows, int64_t cols) {
  Problem problem(values, rows, cols);
  double high = problem.upper();
  if (!(high > 0)) return {};
  // A matrix without noise would have variance 0, where the logarithms end.
  double low = std::max(problem.lower(), 1e-13 * high);
  double variance =
      low < high ? least(low, high, [&](double v) { return problem.free_energy(v); }) : high;
  return {problem.rank(variance), variance};
}

}  // namespace tenon::decomposer
