// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a pointwise operator from its expression: elements as double or as 64-bit integers, the
// arithmetic by the host's evaluator (abi/expr.md), so that an expression has one meaning.

#include <vector>

#include "tenon/sdk/role/op.hpp"

namespace tenon::reference {

// in: dense tensors, NULL where absent; out: dense, of the broadcast shape.
Status run_program(tn_ctx* ctx,
                   const tn_expr_program& program,
                   std::span<const DLTensor* const> in,
                   const DLTensor& out);

// NumPy's broadcast of the shapes of those that are present.
Result<std::vector<int64_t>> broadcast_shape(std::span<const DLTensor* const> in);

}  // namespace tenon::reference
