// SPDX-License-Identifier: Apache-2.0
#include "least_squares.hpp"

#include <Eigen/Cholesky>
#include <algorithm>

namespace tenon::recovery {

Moments::Moments(int64_t n_in, int64_t n_out)
    : xx_(Matrix::Zero(n_in, n_in)),
      xy_(Matrix::Zero(n_in, n_out)),
      x_(Vector::Zero(n_in)),
      y_(Vector::Zero(n_out)) {}

void Moments::add(const Matrix& x, const Matrix& y) {
  rows_ += x.rows();
  xx_.selfadjointView<Eigen::Lower>().rankUpdate(x.transpose());
  xy_.noalias() += x.transpose() * y;
  x_ += x.colwise().sum();
  y_ += y.colwise().sum();
  yy_ += y.squaredNorm();
}

double Moments::error(const Fit& fit) const {
  Matrix full = xx_.selfadjointView<Eigen::Lower>();
  Matrix wx = fit.weight * full;  // [n_out, n_in]
  auto n = static_cast<double>(rows_);
  double sum = yy_ + wx.cwiseProduct(fit.weight).sum() + n * fit.bias.squaredNorm();
  sum += 2 * (fit.bias.dot(fit.weight * x_) - fit.bias.dot(y_));
  sum -= 2 * fit.weight.cwiseProduct(xy_.transpose()).sum();
  return std::max(sum, 0.0) / std::max(n, 1.0);
}

double Moments::spread() const {
  auto n = static_cast<double>(std::max<int64_t>(rows_, 1));
  return std::max(yy_ / n - y_.squaredNorm() / (n * n), 0.0);
}

Fit Moments::ridge(const Fit& present, double damping, bool has_bias) const {
  auto n = static_cast<double>(std::max<int64_t>(rows_, 1));
  Matrix xx = xx_.selfadjointView<Eigen::Lower>();
  xx /= n;
  Matrix xy = xy_ / n;
  Vector x = x_ / n, y = y_ / n;
  if (has_bias) {
    xx.noalias() -= x * x.transpose();
    xy.noalias() -= x * y.transpose();
  } else {
    xy.noalias() -= x * present.bias.transpose();
  }
  xy.noalias() -= xx * present.weight.transpose();
  double mean = xx.trace() / static_cast<double>(xx.rows());
  if (!(mean > 0)) return present;  // inputs that never change determine nothing
  xx.diagonal().array() += damping * mean;
  Fit out;
  Eigen::LLT<Matrix> fast(xx);  // in blocks, which LDLT is not
  Matrix change =
      fast.info() == Eigen::Success ? Matrix(fast.solve(xy)) : Matrix(xx.ldlt().solve(xy));
  out.weight = present.weight + change.transpose();
  out.bias = has_bias ? Vector(y - out.weight * x) : present.bias;
  return out;
}

}  // namespace tenon::recovery
