// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the kernel and the composition of FlexAttention share.

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops::flex {

// What scores and probabilities are computed in, for queries of `dtype`.
Result<uint32_t> softmax_type(Node node, uint32_t dtype);

Result<std::vector<Value>> decomposed(EditView edit, Node node);

}  // namespace tenon::ops::flex
