// SPDX-License-Identifier: Apache-2.0
// Before: nodes none of whose results is used
// After:  they are gone, and so are those that only they used
// Needs:  the row does not say that the operator has effects (STATEFUL)
#include "rule.hpp"

namespace tenon::fusion {
namespace {

bool used(Node node) {
  const tn_op* row = node.row();
  if (row && row->traits & TN_OP_STATEFUL) return true;
  for (Value v : node.outputs()) {
    if (v.consumer_count() || v.is_output()) return true;
  }
  return false;
}

Result<uint64_t> remove_dead(tn_ctx*, tn_graph* graph) {
  TN_TRY(edit, Edit::begin(graph));
  std::vector<Node> nodes = edit.graph().nodes();
  uint64_t changes = 0;
  for (size_t i = nodes.size(); i-- > 0;) {
    if (used(nodes[i])) continue;
    TN_CHECK(edit.erase(nodes[i]));
    ++changes;
  }
  if (changes) TN_CHECK(edit.commit());
  return changes;
}

}  // namespace
}  // namespace tenon::fusion

TENON_RULE(dead_code,
           "dead_code",
           "removes nodes whose results nobody uses",
           nullptr,
           tenon::fusion::remove_dead)
