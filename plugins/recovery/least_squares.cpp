// SPDX-License-Identifier: Apache-2.0
#include "least_squares.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <vector>

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

Matrix Moments::seconds() const {
  Matrix xx = xx_.selfadjointView<Eigen::Lower>();
  return xx / static_cast<double>(std::max<int64_t>(rows_, 1));
}

namespace {

// Factors in blocks, which LDLT does not, where it can.
Matrix solved(const Matrix& a, const Matrix& b) {
  Eigen::LLT<Matrix> fast(a);
  return fast.info() == Eigen::Success ? Matrix(fast.solve(b)) : Matrix(a.ldlt().solve(b));
}

// The change of the weights of each output [n_in, n_out] where those that are zero stay.
Matrix change_beside_zeros(const Matrix& xx, const Matrix& xy, const Matrix& weight) {
  Matrix change = Matrix::Zero(xy.rows(), xy.cols());
  std::vector<Eigen::Index> whole;
  for (Eigen::Index row = 0; row < weight.rows(); ++row) {
    std::vector<Eigen::Index> free;
    for (Eigen::Index c = 0; c < weight.cols(); ++c)
      if (weight(row, c) != 0) free.push_back(c);
    if (static_cast<Eigen::Index>(free.size()) == weight.cols()) {
      whole.push_back(row);
    } else if (!free.empty()) {
      Matrix part = solved(xx(free, free), xy(free, std::vector<Eigen::Index>{row}));
      for (size_t i = 0; i < free.size(); ++i)
        change(free[i], row) = part(static_cast<Eigen::Index>(i), 0);
    }
  }
  if (whole.empty()) return change;
  Matrix parts = solved(xx, xy(Eigen::all, whole));
  for (size_t i = 0; i < whole.size(); ++i)
    change.col(whole[i]) = parts.col(static_cast<Eigen::Index>(i));
  return change;
}

}  // namespace

Fit Moments::ridge(const Fit& present, double damping, bool has_bias, bool keeps_zeros) const {
  auto n = static_cast<double>(std::max<int64_t>(rows_, 1));
  Matrix xx = seconds();
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
  Matrix change = keeps_zeros ? change_beside_zeros(xx, xy, present.weight) : solved(xx, xy);
  out.weight = present.weight + change.transpose();
  out.bias = has_bias ? Vector(y - out.weight * x) : present.bias;
  for (Eigen::Index row = 0; keeps_zeros && row < out.weight.rows(); ++row)
    if (present.weight.row(row).isZero(0)) out.bias[row] = present.bias[row];
  return out;
}

}  // namespace tenon::recovery
