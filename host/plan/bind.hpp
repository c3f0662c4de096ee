// SPDX-License-Identifier: Apache-2.0
#pragma once
// A plan's graph with the shapes of its inputs put in, after the passes that its first backend asks
// for.

#include "plan/plan.hpp"

namespace tenon::host {

const tn_host_graph& g();  // the graph service
tn_type type_of(const tn_graph* graph, tn_value_id value);
// The index of the state whose input (side 0) or new value (side 1) this is, or -1.
int64_t state_of(const tn_graph* graph, tn_value_id value, uint32_t side);
bool is_state(const tn_graph* graph, tn_value_id value, uint32_t side);

// The passes that the plan's first backend asks for.
Status run_passes(const tn_plan& plan, tn_graph* graph);

// *key: what the bound graph is for, by input that is given. Takes the plan's lock for a moment.
Result<Ref<tn_graph>> bind_shapes(tn_plan* plan,
                                  Inputs in,
                                  const Assumptions& assumptions,
                                  Shapes* key);

}  // namespace tenon::host
