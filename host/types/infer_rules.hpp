// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rule for pointwise operators, as pure functions over types: NumPy's broadcasting, and the
// dtype that an expression computes in.

#include <vector>

#include "tenon/expr.h"

#include "languages/axes.hpp"
#include "types/value_type.hpp"

namespace tenon::host {

void append(Type& type, const AxesDim& dim);
// Absent inputs are NULL. The dtype of the result is `dtype`.
Result<Type> broadcast_types(const std::vector<const Type*>& inputs, uint32_t dtype);
// The dtype of what a program computes: operands of arithmetic must be of one type, comparisons and
// logic give bool. `inputs` are dtypes, TN_DTYPE_NONE where not known.
Result<uint32_t> program_dtype(const tn_expr_program& program, const std::vector<uint32_t>& inputs);
// The type that pointwise operators compute in: that of the first input which is not bool.
uint32_t compute_dtype(const std::vector<const Type*>& inputs);

}  // namespace tenon::host
