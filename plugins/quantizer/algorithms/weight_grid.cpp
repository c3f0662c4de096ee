// SPDX-License-Identifier: Apache-2.0
#include "weight_grid.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::quantizer {

double dot(const double* a, const double* b, int64_t n) {
  constexpr int64_t kLanes = 8;
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t k = 0; k < kLanes; ++k)
      sums[k] += a[i + k] * b[i + k];
  double sum = std::accumulate(sums, sums + kLanes, 0.0);
  for (; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

float WeightGrid::quantized(int64_t row, int64_t column, double number) const {
  size_t at = scale_at(row, column);
  double q =
      std::nearbyint(number / static_cast<double>(scale[at])) + static_cast<double>(zero[at]);
  return std::clamp(static_cast<float>(q), low, high);
}

double WeightGrid::dequantized(int64_t row, int64_t column, float q) const {
  size_t at = scale_at(row, column);
  return (static_cast<double>(q) - static_cast<double>(zero[at])) * static_cast<double>(scale[at]);
}

std::vector<float> nearest(const WeightGrid& grid) {
  std::vector<float> quantized(grid.weight.size());
  for (int64_t row = 0; row < grid.rows; ++row)
    for (int64_t column = 0; column < grid.columns; ++column) {
      auto at = static_cast<size_t>(row * grid.columns + column);
      quantized[at] = grid.quantized(row, column, static_cast<double>(grid.weight[at]));
    }
  return quantized;
}

double output_error(const WeightGrid& grid,
                    std::span<const double> hessian,
                    const std::vector<float>& quantized,
                    const Rows& for_rows) {
  const int64_t n = grid.columns;
  std::vector<double> by_row(static_cast<size_t>(grid.rows), 0);  // added up in one order
  for_rows(grid.rows, [&](int64_t begin, int64_t end) {
    std::vector<double> miss(static_cast<size_t>(n));
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t c = 0; c < n; ++c) {
        auto at = static_cast<size_t>(row * n + c);
        miss[static_cast<size_t>(c)] =
            static_cast<double>(grid.weight[at]) - grid.dequantized(row, c, quantized[at]);
      }
      double sum = 0;
      for (int64_t c = 0; c < n; ++c)
        sum += miss[static_cast<size_t>(c)] * dot(hessian.data() + c * n, miss.data(), n);
      by_row[static_cast<size_t>(row)] = sum;
    }
  });
  return std::accumulate(by_row.begin(), by_row.end(), 0.0);
}

}  // namespace tenon::quantizer
