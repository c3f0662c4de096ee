// SPDX-License-Identifier: Apache-2.0
#pragma once
// Singular values and left singular vectors of a matrix, from the eigenvectors of its Gram matrix:
// of an unfolded weight one side is short and the other long, and only the short one is needed.
// Singular values under 1e-8 of the largest are lost in rounding, which weights in float32 are too.

#include "algorithms/kernel.hpp"

namespace tenon::decomposer {

struct Spectrum {
  Matrix vectors;  // a column for each value; empty when only values were asked for
  Vector values;   // falling
};

// gram: a * aᵀ, symmetric.
Spectrum spectrum_of_gram(const Matrix& gram);
Vector singular_values_of_gram(const Matrix& gram);

Matrix gram_by_out(const Kernel& weight);  // [n_out, n_out]
Matrix gram_by_in(const Kernel& weight);   // [n_in, n_in]

// Error of the best approximation of this rank, relative to the norm (Eckart and Young, 1936).
double truncation_error(const Vector& values, int64_t rank);

}  // namespace tenon::decomposer
