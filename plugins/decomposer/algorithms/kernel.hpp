// SPDX-License-Identifier: Apache-2.0
#pragma once
// The weight of a layer as plain numbers: one matrix [n_out, n_in] for each place of its window.

#include <Eigen/Core>
#include <cstdint>
#include <vector>

namespace tenon::decomposer {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixView = Eigen::Map<const Matrix>;
using Vector = Eigen::VectorXd;

inline std::vector<double> numbers_of(const Matrix& m) {
  return {m.data(), m.data() + m.size()};
}

struct Kernel {
  int64_t n_out = 0, n_in = 0, window = 1;
  std::vector<double> numbers;  // [n_out, n_in, window]

  // Unfolded along the output channel: [n_out, n_in * window].
  MatrixView by_out() const { return {numbers.data(), n_out, n_in * window}; }
  // What output channel o has: [n_in, window].
  MatrixView of_out(int64_t o) const { return {numbers.data() + o * n_in * window, n_in, window}; }
  double squared_norm() const { return by_out().squaredNorm(); }
};

}  // namespace tenon::decomposer
