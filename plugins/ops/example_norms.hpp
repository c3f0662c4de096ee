// SPDX-License-Identifier: Apache-2.0
#pragma once
// The column example_norms of products (tenon/role/op.h): squared norms of each example's gradient
// of a weight, from what the node reads and the cotangent of its result, with the smaller one of
// two intermediate results. Per example, with x [s, k] and dy [s, o]:
//
//   |x^T dy|^2 = sum over s, t of (x x^T)[s, t] (dy dy^T)[s, t]
//
// By the right side the gradient is never made (Goodfellow 2015 for s = 1; Li et al., "Large
// language models can be strong differentially private learners", 2022, section 4); by the left
// side it is for a moment, which takes less where 2 s^2 > k o (Bu et al., "Scalable and efficient
// training of large convolutional neural networks with differential privacy", 2022).

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

Status matmul_example_norms(Gradients& g);
Status gemm_example_norms(Gradients& g);
Status conv_example_norms(Gradients& g);
// Of the table: places of an example that look up the same row add up.
Status gather_example_norms(Gradients& g);

}  // namespace tenon::ops
