// SPDX-License-Identifier: Apache-2.0
#include "algorithms/spectrum.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

namespace tenon::decomposer {
namespace {

Vector falling_roots(const Vector& rising) {
  return rising.reverse().cwiseMax(0).cwiseSqrt();
}

}  // namespace

Spectrum spectrum_of_gram(const Matrix& gram) {
  Eigen::SelfAdjointEigenSolver<Matrix> solver(gram);
  return {solver.eigenvectors().rowwise().reverse(), falling_roots(solver.eigenvalues())};
}

Vector singular_values_of_gram(const Matrix& gram) {
  Eigen::SelfAdjointEigenSolver<Matrix> solver(gram, Eigen::EigenvaluesOnly);
  return falling_roots(solver.eigenvalues());
}

Matrix gram_by_out(const Kernel& weight) {
  MatrixView rows = weight.by_out();
  return rows * rows.transpose();
}

Matrix gram_by_in(const Kernel& weight) {
  Matrix sum = Matrix::Zero(weight.n_in, weight.n_in);
  for (int64_t o = 0; o < weight.n_out; ++o)
    sum.noalias() += weight.of_out(o) * weight.of_out(o).transpose();
  return sum;
}

double truncation_error(const Vector& values, int64_t rank) {
  double total = values.squaredNorm();
  if (total <= 0) return 0;
  int64_t dropped = std::max<int64_t>(values.size() - rank, 0);
  return std::sqrt(values.tail(dropped).squaredNorm() / total);
}

}  // namespace tenon::decomposer
