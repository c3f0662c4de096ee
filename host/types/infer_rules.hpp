// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rules of inference as pure functions over types: a row's axes; for pointwise operators NumPy's
// broadcasting, and the dtype that an expression computes in.

#include <vector>

#include "tenon/expr.h"

#include "languages/axes.hpp"
#include "types/value_type.hpp"

namespace tenon::host {

// Types of the outputs by a row's axes, of the first input's dtype. Absent inputs are NULL;
// `attributes` has the node's integers by name. Where an input's rank is not known, nor are theirs.
Result<std::vector<Type>> axes_types(const Axes& axes,
                                     const std::vector<const Type*>& inputs,
                                     size_t n_outputs,
                                     const AxesAttributes& attributes);
void append(Type& type, const AxesDim& dim);
// Absent inputs are NULL. The dtype of the result is `dtype`.
Result<Type> broadcast_types(const std::vector<const Type*>& inputs, uint32_t dtype);
// The dtype of what a program computes: operands of arithmetic must be of one type, comparisons and
// logic give bool. `inputs` are dtypes, TN_DTYPE_NONE where not known.
Result<uint32_t> program_dtype(const tn_expr_program& program, const std::vector<uint32_t>& inputs);
// The type that pointwise operators compute in: that of the first input which is not bool.
uint32_t compute_dtype(const std::vector<const Type*>& inputs);

}  // namespace tenon::host
