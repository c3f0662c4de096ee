// SPDX-License-Identifier: Apache-2.0
#pragma once
// x^T (x - mean), with the mean of each column over the rows that the product sums over, equals
// (x - mean)^T (x - mean): what is added, mean^T (x - mean), is a mean times a sum of differences
// from it, which is 0. So it is symmetric, and half of it need be computed
// (implementations/symmetric_product). Large means do not cancel: both factors are centred before
// they are multiplied. Likewise x (x - mean)^T with the means of rows.
//
// Before: MatMul(Transpose(x), d) or MatMul(Transpose(d), x), d = x - ReduceMean(x, 0)
// After:  Gemm(d, d), transA
//
// Before: MatMul(x, Transpose(d)) or MatMul(d, Transpose(x)), d = x - ReduceMean(x, 1)
// After:  Gemm(d, d), transB

#include "graph/graph.hpp"

namespace tenon::onednn {

// Of an [n, n] product that sums over k: whether the half that is saved pays for copying the rest
// and for the smaller blocks. Swept over 28 shapes from 512 x 256 to 3072 x 4096
// (tests/bench/onednn/swept.py): all that are taken are faster, those that are not took 1.03 times
// as long.
constexpr bool pays_to_halve(int64_t n, int64_t k) {
  return n >= 512 && k >= (n < 768 ? 512 : 256);
}

void centre_products(Graph& graph);

}  // namespace tenon::onednn
