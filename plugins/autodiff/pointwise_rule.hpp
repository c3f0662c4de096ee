// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gradient of a pointwise node from its expression, by the derivatives of abi/expr.md.

#include "tenon/sdk/role/op.hpp"

namespace tenon::autodiff {

// Gradients in the shape of the node's output: whoever asked sums where an input was broadcast.
Status pointwise_rule(Gradients& gradients);

}  // namespace tenon::autodiff
