// SPDX-License-Identifier: Apache-2.0
#include "gptq.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::quantizer {
namespace {

using Matrix = std::vector<double>;  // [n, n]

// R, upper triangular, with H = R R^T; false where H is not positive definite.
bool factor(Matrix* matrix, int64_t n) {
  double* m = matrix->data();
  for (int64_t j = n - 1; j >= 0; --j) {
    const double* row = m + j * n;
    double pivot = row[j] - dot(row + j + 1, row + j + 1, n - 1 - j);
    if (!(pivot > 0) || !std::isfinite(pivot)) return false;
    pivot = std::sqrt(pivot);
    for (int64_t i = 0; i < j; ++i) {
      double* other = m + i * n;
      other[j] = (other[j] - dot(other + j + 1, row + j + 1, n - 1 - j)) / pivot;
    }
    m[j * n + j] = pivot;
  }
  return true;
}

// The inverse of an upper triangular matrix. It is the U of H^-1 = U^T U when R is as above.
Matrix inverse(const Matrix& r, int64_t n) {
  Matrix u(r.size(), 0);
  for (int64_t i = n - 1; i >= 0; --i) {
    double* row = u.data() + i * n;
    row[i] = 1;
    for (int64_t k = i + 1; k < n; ++k) {
      double factor = r[static_cast<size_t>(i * n + k)];
      const double* below = u.data() + k * n;
      for (int64_t j = k; j < n; ++j)
        row[j] -= factor * below[j];
    }
    double pivot = r[static_cast<size_t>(i * n + i)];
    for (int64_t j = i; j < n; ++j)
      row[j] /= pivot;
  }
  return u;
}

struct Order {
  std::vector<int64_t> columns;  // in the order in which they are rounded
  Matrix u;                      // [n, n] in that order; empty: no factors
};

Order order_of(std::span<const double> hessian, int64_t n, const GptqPlan& plan) {
  Order out;
  auto at = [&](int64_t i, int64_t j) { return hessian[static_cast<size_t>(i * n + j)]; };
  double mean = 0;
  for (int64_t i = 0; i < n; ++i)
    mean += at(i, i) / static_cast<double>(n);
  out.columns.resize(static_cast<size_t>(n));
  std::iota(out.columns.begin(), out.columns.end(), int64_t{0});
  if (plan.largest_first)
    std::stable_sort(out.columns.begin(), out.columns.end(),
                     [&](int64_t a, int64_t b) { return at(a, a) > at(b, b); });
  double damping = std::max(plan.damping, 1e-12);
  for (int tries = 0; tries < 4; ++tries, damping *= 10) {
    Matrix m(static_cast<size_t>(n * n));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        int64_t a = out.columns[static_cast<size_t>(i)], b = out.columns[static_cast<size_t>(j)];
        double one = at(a, b);
        if (i == j) one += damping * mean;
        m[static_cast<size_t>(i * n + j)] = one;
      }
    if (!factor(&m, n)) continue;
    out.u = inverse(m, n);
    break;
  }
  return out;
}

void round_row(const WeightGrid& grid, const Order& order, int64_t row, float* quantized) {
  const int64_t n = grid.columns;
  std::vector<double> left(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    int64_t column = order.columns[static_cast<size_t>(i)];
    left[static_cast<size_t>(i)] =
        static_cast<double>(grid.weight[static_cast<size_t>(row * n + column)]);
  }
  for (int64_t i = 0; i < n; ++i) {
    int64_t column = order.columns[static_cast<size_t>(i)];
    const double* u = order.u.data() + i * n;
    float q = grid.quantized(row, column, left[static_cast<size_t>(i)]);
    quantized[column] = q;
    double error = (left[static_cast<size_t>(i)] - grid.dequantized(row, column, q)) / u[i];
    double* rest = left.data();
    for (int64_t j = i + 1; j < n; ++j)
      rest[j] -= error * u[j];
  }
}

}  // namespace

std::vector<float> gptq(const WeightGrid& grid,
                        std::span<const double> hessian,
                        const GptqPlan& plan,
                        const Rows& for_rows) {
  Order order = order_of(hessian, grid.columns, plan);
  if (order.u.empty()) return {};
  std::vector<float> quantized(grid.weight.size());
  for_rows(grid.rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      round_row(grid, order, row, quantized.data() + row * grid.columns);
  });
  return quantized;
}

}  // namespace tenon::quantizer
