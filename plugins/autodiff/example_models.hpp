// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of a model for each example by the model itself: that of one example is differentiated,
// then batched. For models whose examples meet somewhere, and as the oracle of all shorter ways.

#include "examples.hpp"
#include "interface.hpp"

namespace tenon::autodiff {

// Into `edit`, whose inputs begin with the model's: [examples, shape of the parameter] for each.
Result<std::vector<Value>> gradients_by_model(tn_ctx* ctx,
                                              const EditView& edit,
                                              Graph model,
                                              const std::string& output,
                                              const Examples& examples,
                                              const std::vector<Named>& wrt,
                                              const Cancel& cancel);

}  // namespace tenon::autodiff
