// SPDX-License-Identifier: Apache-2.0
#pragma once
// How alike two values of a model are on the samples of a batch: plain numbers, no graph.

#include <vector>

#include "tenon/sdk/tensor.hpp"

namespace tenon::pruner {

// The sum over samples of 1 - cos(a, b), each sample as one vector (Men et al., ShortGPT, 2024).
double changes(const Tensor& a, const Tensor& b);

// Products of all pairs of samples, [n, n], the diagonal left out: what the unbiased estimate
// reads.
struct Gram {
  size_t n = 0;
  std::vector<double> numbers;
  static Gram of(const Tensor& value);  // float32, [n, ...]
};

// The unbiased estimate of the Hilbert-Schmidt independence criterion (Song et al. 2012, equation
// 5), of at least four samples. Averaged over batches it is what linear centred kernel alignment
// (Kornblith et al. 2019) divides: HSIC(a, b) / sqrt(HSIC(a, a) HSIC(b, b)).
double hsic(const Gram& a, const Gram& b);

}  // namespace tenon::pruner
