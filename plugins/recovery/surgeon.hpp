// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights taken out of a product one column after the other, while those that are left make up for
// them: the optimal brain surgeon (Hassibi and Stork 1993) with the order of columns fixed, so that
// all outputs share one inverse (Frantar and Alistarh, "SparseGPT", ICML 2023, algorithm 1). Plain
// numbers, no graph.

#include "least_squares.hpp"

namespace tenon::recovery {

struct SurgeonPlan {
  double sparsity = 0.5;     // of each block of columns, over all outputs together
  int64_t keep = 0, of = 0;  // of > 0: so many of each `of` neighbours stay, instead
  int64_t block = 128;       // columns whose weights are chosen at once
  double damping = 0.01;     // mean squares of an input that are added to each
};

// weight: [n_out, n_in]; seconds: [n_in, n_in], mean of x xT over the rows that the weight
// multiplies. Weights that are zero count as taken out and stay so. False, with the weight as it
// was, where the matrix has no inverse even with a thousand times the damping.
bool take_out(Matrix* weight, const Matrix& seconds, const SurgeonPlan& plan);

}  // namespace tenon::recovery
