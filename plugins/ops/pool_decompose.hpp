// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

// LpPool as a convolution of powers with ones.
Result<std::vector<Value>> lp_pool_decompose(EditView edit, Node node);

}  // namespace tenon::ops
