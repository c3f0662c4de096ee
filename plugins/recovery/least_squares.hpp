// SPDX-License-Identifier: Apache-2.0
#pragma once
// A layer's weights by ridge regression: targets y [rows, n_out] from inputs x [rows, n_in].

#include <Eigen/Core>
#include <cstdint>

namespace tenon::recovery {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

struct Fit {
  Matrix weight;  // [n_out, n_in]
  Vector bias;    // [n_out]
};

// Sums over rows, in double, so that rows need not be kept.
class Moments {
 public:
  Moments() = default;
  Moments(int64_t n_in, int64_t n_out);
  // x: [rows, n_in], y: [rows, n_out]
  void add(const Matrix& x, const Matrix& y);
  int64_t rows() const { return rows_; }
  // The mean over rows of ||y - W x - b||^2, and of ||y - mean y||^2.
  double error(const Fit& fit) const;
  double spread() const;

  // The fit of least squared error plus `damping` times the mean square of an input times
  // ||W - present||^2: what rows do not determine stays as it is. With a bias inputs and targets
  // are centred, so that it takes up means and costs nothing; without, the present one stays.
  // keeps_zeros: weights that are zero in the present fit stay so, each output is fitted by its
  // others, and one that has none keeps its bias.
  Fit ridge(const Fit& present, double damping, bool has_bias, bool keeps_zeros = false) const;
  // The mean over rows of x xT.
  Matrix seconds() const;

 private:
  int64_t rows_ = 0;
  Matrix xx_, xy_;  // [n_in, n_in], [n_in, n_out]
  Vector x_, y_;
  double yy_ = 0;
};

}  // namespace tenon::recovery
