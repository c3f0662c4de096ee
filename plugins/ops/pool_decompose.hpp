// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

// LpPool as a convolution of powers with ones.
Result<std::vector<Value>> lp_pool_decompose(EditView edit, Node node);

// Batch columns. Indices count the elements of one example, not those of all that are pooled
// together.
Status max_pool_batch(Batching& b);
Status average_grad_batch(Batching& b);

}  // namespace tenon::ops
