// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many singular values of a noisy matrix are signal: the analytic solution of empirical
// variational Bayesian matrix factorization (Nakajima, Sugiyama, Babacan and Tomioka, "Global
// analytic solution of fully-observed variational Bayesian matrix factorization", JMLR 14, 2013,
// section 4), with the noise's variance estimated from the same values.

#include "algorithms/kernel.hpp"

namespace tenon::decomposer {

struct Evbmf {
  int64_t rank = 0;     // 0: all noise
  double variance = 0;  // of the noise
};

// values: singular values of a matrix [rows, cols], falling, at least min(rows, cols) of them.
Evbmf evbmf(const Vector& values, int64_t rows, int64_t cols);

}  // namespace tenon::decomposer
