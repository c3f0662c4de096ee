// SPDX-License-Identifier: Apache-2.0
#pragma once
// GPTQ (Frantar et al., ICLR 2023): codes of a weight one column after the other, each column's
// rounding error made up for by those that are still to come, as far as the inputs allow it.
// Plain numbers; no graph.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tenon::quantizer {

// A weight as a matrix [rows, columns]: a row for each output channel, a column for each number
// that its sum goes over. Its grid is given, so whatever stores it can store the answer.
struct GptqLayer {
  int64_t rows = 0, columns = 0;
  std::vector<float> weight;  // [rows, columns]
  std::vector<float> scale,
      zero;                      // [rows, ceil(columns / block)]: w is about (code - zero) * scale
  int64_t block = 0;             // columns of one scale
  float low = -127, high = 127;  // codes
};

struct GptqPlan {
  double damping = 0.01;      // of the mean of the diagonal, added to it
  bool largest_first = true;  // columns in falling order of the diagonal (act-order)
};

// body(begin, end) on ranges that cover 0..n, on as many threads as the caller has.
using Rows = std::function<void(int64_t n, const std::function<void(int64_t, int64_t)>& body)>;

// hessian: [columns, columns], the sum of x x^T over inputs. A column that had no input is rounded
// to the nearest code: what it sees one day is not known. Codes [rows, columns]; empty where the
// matrix has no factors even with much damping.
std::vector<float> gptq(const GptqLayer& layer,
                        std::span<const double> hessian,
                        const GptqPlan& plan,
                        const Rows& for_rows);

// Codes that are nearest to each number on its own.
std::vector<float> nearest(const GptqLayer& layer);
// Sum over rows of e H e^T, e being what the codes miss: the squared error of the layer's result.
double output_error(const GptqLayer& layer,
                    std::span<const double> hessian,
                    const std::vector<float>& codes,
                    const Rows& for_rows);

}  // namespace tenon::quantizer
