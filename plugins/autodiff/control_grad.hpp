// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of If, Scan and Loop: control flow whose bodies are gradients of bodies.

#include "tenon/sdk/role/op.hpp"

namespace tenon::autodiff {

// Unsupported where there is no rule for this operator.
Status control_gradient(Gradients& g);

}  // namespace tenon::autodiff
