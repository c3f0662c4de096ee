// SPDX-License-Identifier: Apache-2.0
#pragma once
// GPTQ (Frantar et al., ICLR 2023): a weight rounded one column after the other, each column's
// rounding error made up for by those that are still to come, as far as the inputs allow it.
// Plain numbers; no graph.

#include "weight_grid.hpp"

namespace tenon::quantizer {

struct GptqPlan {
  double damping = 0.01;      // of the mean of the diagonal, added to it
  bool largest_first = true;  // columns in falling order of the diagonal (act-order)
};

// hessian: [columns, columns], the sum of x x^T over inputs. A column that had no input is rounded
// to the nearest value: what it sees one day is not known. Quantized values [rows, columns]; empty
// where the matrix has no factors even with much damping.
std::vector<float> gptq(const WeightGrid& grid,
                        std::span<const double> hessian,
                        const GptqPlan& plan,
                        const Rows& for_rows);

}  // namespace tenon::quantizer
