// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a specialization was compiled under: that declared sizes hold, and that a backend can run
// what it claims. When a run disproves an assumption, the plan is compiled again without it.

#include "plan/plan.hpp"

namespace tenon::host {

// Whether sizes in the graph rest on a declaration: inference alone leaves them open.
bool trusts_declared(const tn_graph& graph);
// Declarations say element types alone from here on.
Status forget_declared_sizes(tn_graph* graph);
// Neither do inputs, and what was declared by their sizes.
Status forget_input_sizes(tn_graph* graph);

// A warning, once for a plan, when an output declares another shape than the bound graph computes.
void warn_of_contradictions(tn_plan* plan, const tn_graph& bound);

// Assigns nodes that a backend claimed and cannot run to the next backend, with a warning. False
// when there is no further backend.
bool lose(const tn_plan& plan,
          int backend,
          const std::vector<std::string>& nodes,
          const std::string& why,
          Lost* lost);

// Runs a specialization. After a failure that disproves one of its assumptions, compiles and runs
// another one, which replaces the first in the plan's cache.
Status run_or_recompile(tn_plan* plan, CompiledRef compiled, const RunRequest& request);

}  // namespace tenon::host
