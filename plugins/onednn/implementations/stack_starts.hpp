// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stacks of matrices, whose axes in front of the last two broadcast.

#include <cstdint>
#include <vector>

#include "lowering/view.hpp"

namespace tenon::onednn {

// Where the operand's matrix for each product of the stack begins, in elements.
std::vector<int64_t> stack_starts(const Dims& operand, const Dims& strides, const Dims& stack);

}  // namespace tenon::onednn
