// SPDX-License-Identifier: Apache-2.0
// The C API's way to run a graph: the eval service under flat names.
#include "capi/capi.hpp"
#include "plan/plan.hpp"

namespace tenon::host::exported {

tn_status* tenon_compile(tenon_session* session,
                         const tn_graph* graph,
                         tn_str options,
                         tn_plan** out) {
  return eval_service()->compile(context(session), graph, nullptr, 0, options, out);
}

tn_status* tenon_run(tn_plan* plan,
                     const DLTensor* const* in,
                     uint64_t n_in,
                     const tn_outputs* outputs,
                     const tn_cancel* cancel) {
  return eval_service()->run(plan, in, n_in, outputs, cancel);
}

}  // namespace tenon::host::exported
