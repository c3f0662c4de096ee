// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a form of a plan was compiled for and does not hold, so that another form is made:
// sizes that only the file declares, nodes that a backend claimed and cannot do after all.

#include "plan/plan.hpp"

namespace tenon::host {

// Whether sizes in the graph rest on a declaration: inference alone leaves them open.
bool trusts_declared(const tn_graph& graph);
// Declarations say element types alone from here on.
Status forget_declared_sizes(tn_graph* graph);

// A warning, once for a plan, when an output declares another shape than the bound graph computes.
void warn_of_contradictions(tn_plan* plan, const tn_graph& bound);

// Nodes that a backend claimed and cannot do go to the next one, with a warning. False: there is
// none.
bool lose(const tn_plan& plan,
          int backend,
          const std::vector<std::string>& nodes,
          const std::string& why,
          Lost* lost);

// Runs a form, and after a failure that another form would not have, that one, which then takes
// the place of the first.
Status run_or_relearn(tn_plan* plan,
                      std::shared_ptr<Compiled> compiled,
                      const DLTensor* const* in,
                      uint64_t n_in,
                      const tn_outputs* outputs,
                      const tn_cancel* cancel,
                      nlohmann::json* profile);

}  // namespace tenon::host
