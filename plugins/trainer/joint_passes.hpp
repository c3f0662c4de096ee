// SPDX-License-Identifier: Apache-2.0
#pragma once
// Passes on forward and backward together, with the options that a run gives them.

#include "step_graph.hpp"

namespace tenon::trainer {

// The pass with the precision of the plan, where it has an option for that and was given none:
// autodiff.recompute counts what results take in that plan.
PassChoice for_plan(const Recipe& recipe, const PassChoice& pass);

// Puts the passes that a run was given into its recipe. A budget that is a share
// (autodiff.recompute) becomes that of a step of these sizes, for all steps: smaller ones, as that
// of an epoch's last batch, take fewer bytes, but parameters and their gradients are a larger share
// of them.
Status set_joint(Recipe& recipe,
                 const std::vector<PassChoice>& given,
                 StepSizes sizes,
                 const Cancel& cancel);
// The same with the plan that takes least in place of shares; false: there are none.
bool set_least_budgets(Recipe& recipe, const std::vector<PassChoice>& given);

}  // namespace tenon::trainer
