// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators that only change the shape read a parameter that says it: sizes, axes. Where it is
// computed, the graph's declared type says which shape to compile for; a run whose parameter says
// another one ends with an error.

#include "handlers.hpp"

namespace tenon::onednn {

// Adds a step that looks at the parameter of a Reshape, Expand, Squeeze, Unsqueeze or Split;
// nothing when it is absent or constant.
void guard_shape(Lowering& lowering, int node);

}  // namespace tenon::onednn
