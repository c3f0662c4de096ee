// SPDX-License-Identifier: Apache-2.0
#pragma once
// A weight and the grid that it is rounded to. The grid is given, so whatever stores it can store
// the answer, and the file stays as long as it was. Plain numbers; no graph.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tenon::quantizer {

// A weight as a matrix [rows, columns]: a row for each output channel, a column for each number
// that its sum goes over.
struct WeightGrid {
  int64_t rows = 0, columns = 0;
  std::vector<float> weight;       // [rows, columns]
  std::vector<float> scale, zero;  // [rows, ceil(columns / block)]: w is about (q - zero) * scale
  int64_t block = 0;               // columns of one scale
  float low = -127, high = 127;    // of quantized values

  // Where the scale of a number is.
  size_t scale_at(int64_t row, int64_t column) const {
    return static_cast<size_t>(row * ((columns + block - 1) / block) + column / block);
  }
  // The nearest quantized value, and what one stands for.
  float quantized(int64_t row, int64_t column, double number) const;
  double dequantized(int64_t row, int64_t column, float q) const;
};

// body(begin, end) on ranges that cover 0..n, on as many threads as the caller has.
using Rows = std::function<void(int64_t n, const std::function<void(int64_t, int64_t)>& body)>;

// Quantized values [rows, columns], each the nearest to its number.
std::vector<float> nearest(const WeightGrid& grid);
// Sum over rows of e H e^T, e being what rounding leaves out: the squared error of the layer's
// result. hessian: [columns, columns], the sum of x x^T over inputs.
double output_error(const WeightGrid& grid,
                    std::span<const double> hessian,
                    const std::vector<float>& quantized,
                    const Rows& for_rows);

double dot(const double* a, const double* b, int64_t n);

}  // namespace tenon::quantizer
