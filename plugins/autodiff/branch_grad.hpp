// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gradient of If: an If of the gradients of its branches.

#include "bodies.hpp"

namespace tenon::autodiff {

// What the branch that ran made on its way and its gradient reads is handed over as further outputs
// of the If, so nothing is computed twice; for the other branch those outputs are zeros. A value
// whose sizes are not known before it is there is computed again instead.
Status if_gradient(Gradients& g);

// Gradients of some values of a body under construction, by values in it; falsy: zero.
Result<std::vector<Value>> gradients_inside(const Body& body,
                                            const std::vector<Value>& outputs,
                                            const std::vector<Value>& cotangents,
                                            const std::vector<Value>& wrt);

// An output of the body: the gradient of `of`, zeros where it is falsy.
Status add_gradient(const Body& body, Value gradient, Value of);

}  // namespace tenon::autodiff
