// SPDX-License-Identifier: Apache-2.0
#include "algorithms/cp.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace tenon::decomposer {
namespace {

// Relative to the mean diagonal: keeps nearly parallel components apart.
constexpr double kRidge = 1e-8;

Matrix gram(const Matrix& factor) {
  return factor.transpose() * factor;
}

// rows and columns together: [height * width, rank].
Matrix window_factor(const Matrix& rows, const Matrix& columns) {
  Matrix out(rows.rows() * columns.rows(), rows.cols());
  for (int64_t y = 0; y < rows.rows(); ++y)
    for (int64_t x = 0; x < columns.rows(); ++x)
      out.row(y * columns.rows() + x) = rows.row(y).cwiseProduct(columns.row(x));
  return out;
}

// projected * (normal + ridge)^-1
Matrix solve(const Matrix& projected, Matrix normal) {
  normal.diagonal().array() += kRidge * normal.trace() / static_cast<double>(normal.rows());
  Matrix transposed = projected.transpose();
  return Eigen::LDLT<Matrix>(normal).solve(transposed).transpose();
}

void normalize_columns(Matrix* factor) {
  for (int64_t r = 0; r < factor->cols(); ++r) {
    double norm = factor->col(r).norm();
    if (norm > 0) factor->col(r) /= norm;
  }
}

// The weight against all factors but one.
Matrix project_on_out(const Kernel& weight, const Matrix& in, const Matrix& window) {
  Matrix out(weight.n_out, in.cols());
  for (int64_t o = 0; o < weight.n_out; ++o) {
    Matrix part = weight.of_out(o) * window;
    out.row(o) = part.cwiseProduct(in).colwise().sum();
  }
  return out;
}
Matrix project_on_in(const Kernel& weight, const Matrix& out, const Matrix& window) {
  Matrix in = Matrix::Zero(weight.n_in, out.cols());
  for (int64_t o = 0; o < weight.n_out; ++o) {
    Matrix part = weight.of_out(o) * window;
    in += part * out.row(o).asDiagonal();
  }
  return in;
}
Matrix project_on_window(const Kernel& weight, const Matrix& out, const Matrix& in) {
  Matrix window = Matrix::Zero(weight.window, out.cols());
  for (int64_t o = 0; o < weight.n_out; ++o) {
    Matrix part = weight.of_out(o).transpose() * in;
    window += part * out.row(o).asDiagonal();
  }
  return window;
}

void update_window(const Kernel& weight, Cp* parts) {
  Matrix seen = project_on_window(weight, parts->out, parts->in);
  Matrix outer = gram(parts->out).cwiseProduct(gram(parts->in));
  int64_t height = parts->rows.rows(), width = parts->columns.rows(), rank = seen.cols();
  Matrix rows = Matrix::Zero(height, rank), columns = Matrix::Zero(width, rank);
  for (int64_t i = 0; i < height * width; ++i)
    rows.row(i / width) += seen.row(i).cwiseProduct(parts->columns.row(i % width));
  parts->rows = solve(rows, outer.cwiseProduct(gram(parts->columns)));
  normalize_columns(&parts->rows);
  for (int64_t i = 0; i < height * width; ++i)
    columns.row(i % width) += seen.row(i).cwiseProduct(parts->rows.row(i / width));
  parts->columns = solve(columns, outer.cwiseProduct(gram(parts->rows)));
  normalize_columns(&parts->columns);
}

// Solves for `out`, which carries the size of each component, and judges the whole.
void update_out(const Kernel& weight, Cp* parts) {
  Matrix window = window_factor(parts->rows, parts->columns);
  Matrix projected = project_on_out(weight, parts->in, window);
  Matrix normal = gram(parts->in).cwiseProduct(gram(window));
  parts->out = solve(projected, normal);
  double whole = weight.squared_norm();
  double common = projected.cwiseProduct(parts->out).sum();
  double own = gram(parts->out).cwiseProduct(normal).sum();
  parts->error = std::sqrt(std::max(whole - 2 * common + own, 0.0) / whole);
  parts->cancellation = parts->out.squaredNorm() / whole;
}

// The size of each component, from `out` to all four.
void share_sizes(Cp* parts) {
  for (int64_t r = 0; r < parts->out.cols(); ++r) {
    double size = parts->out.col(r).norm();
    if (!(size > 0)) continue;
    double part = std::pow(size, 0.25);
    parts->out.col(r) *= part / size;
    parts->in.col(r) *= part;
    parts->rows.col(r) *= part;
    parts->columns.col(r) *= part;
  }
}

}  // namespace

Cp cp(const Kernel& weight, Cp start, const AlsLimits& limits) {
  Cp parts = std::move(start);
  normalize_columns(&parts.in);
  normalize_columns(&parts.rows);
  normalize_columns(&parts.columns);
  update_out(weight, &parts);
  for (parts.iterations = 0; parts.iterations < limits.iterations;) {
    double before = parts.error;
    Matrix window = window_factor(parts.rows, parts.columns);
    parts.in =
        solve(project_on_in(weight, parts.out, window), gram(parts.out).cwiseProduct(gram(window)));
    normalize_columns(&parts.in);
    update_window(weight, &parts);
    update_out(weight, &parts);
    ++parts.iterations;
    if (before - parts.error < limits.tolerance) break;
  }
  share_sizes(&parts);
  return parts;
}

}  // namespace tenon::decomposer
