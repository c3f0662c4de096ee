// SPDX-License-Identifier: Apache-2.0
#pragma once
// AdaRound (Nagel et al., ICML 2020): whether each number of a weight goes up or down is learned,
// by what the layer gives. h(V) in [0, 1] stands for the step up; a term that grows pushes it to
// either end. The layer's error is a quadratic form in what rounding leaves out (section 3.2), so
// that the sums of inputs are all that is needed of the data and every step sees all of them. Plain
// numbers; no graph.

#include "weight_grid.hpp"

namespace tenon::quantizer {

struct AdaroundPlan {
  int64_t steps = 1000;  // of Adam
  double rate = 0.03;
  double pressure =
      0.3;            // of the term that pushes to the ends, the mean square of an input being 1
  double calm = 0.2;  // share of the steps before that begins
};

// made = miss * H, both [rows, columns] and row by row; false where that failed.
using TimesHessian = std::function<bool(std::span<const float> miss, std::span<float> made)>;

// mean_square: of the diagonal of H. Quantized values [rows, columns]; empty where there is no
// input or a product failed.
std::vector<float> adaround(const WeightGrid& grid,
                            double mean_square,
                            const AdaroundPlan& plan,
                            const TimesHessian& times_hessian,
                            const Rows& for_rows);

}  // namespace tenon::quantizer
