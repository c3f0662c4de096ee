// SPDX-License-Identifier: Apache-2.0
#pragma once
// A matrix as the product of two thin ones: truncated SVD, W ~ (U sqrt(S)) (sqrt(S) Vᵀ). Both
// factors get the root of the singular values, so that neither is hard to quantize or to train.

#include "algorithms/spectrum.hpp"

namespace tenon::decomposer {

struct LowRank {
  Matrix left;   // [m, rank]
  Matrix right;  // [rank, n]
};

// Singular vectors of the shorter side of a matrix [m, n].
Spectrum short_side_spectrum(const MatrixView& matrix);
// The same, values alone.
Vector short_side_values(const MatrixView& matrix);
// spectrum: of this matrix's shorter side. rank: from 1 to min(m, n).
LowRank truncate(const MatrixView& matrix, const Spectrum& spectrum, int64_t rank);

}  // namespace tenon::decomposer
