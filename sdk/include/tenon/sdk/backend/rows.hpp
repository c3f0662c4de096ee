// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nodes by what their operator's row brings: its plain kernel, its expression, or smaller
// operators.

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/role/op.hpp"

namespace tenon::backend {

inline bool has_expr(tenon::Node node) {
  const tn_op* row = node.row();
  return row && row->expr.len > 0;
}

// Why a node cannot be run by its row; empty: it can.
inline std::string why_no_row(tenon::Node node) {
  const tn_op* row = node.row();
  if (!row) return cat("no loaded plugin brings a row for ", node.type());
  if (row->traits & TN_OP_CONTROL) return "control flow is the host's";
  if (row->ref || has_expr(node) || row->decompose) return {};
  return cat("the row of ", node.type(), " has neither ref nor expr nor decompose");
}

// Nodes without kernel and expression in smaller operators; those that is_own(node) are left.
template <class IsOwn>
Status expand_composites(tn_graph* graph, IsOwn&& is_own) {
  // What a decomposition makes may be composite itself; rows that expand for ever are refused.
  for (int round = 0; round < 16; ++round) {
    std::vector<tn_node_id> composite;
    for (tenon::Node node : tenon::Graph{graph}.nodes()) {
      const tn_op* row = node.row();
      bool is_composite = row && !row->ref && !has_expr(node) && row->decompose;
      if (is_composite && !is_own(node)) composite.push_back(node.id);
    }
    if (composite.empty()) return {};
    TN_TRY(edit, Edit::begin(graph));
    for (tn_node_id node : composite)
      TN_CHECK(services.op->decompose(edit.raw, node));
    TN_CHECK(edit.commit());
  }
  return {TN_INTERNAL, "operators are still composite after 16 rounds of decompose"};
}

// The row's kernel on dense tensors, NULL where absent.
inline Status call_row(tn_ctx* ctx,
                       tenon::Node node,
                       const tn_op* row,
                       std::span<const DLTensor* const> in,
                       const tn_outputs* outputs,
                       const tn_cancel* cancel) {
  tn_op_call call{sizeof call, 0,       ctx,     node.graph, node.id, in.data(),
                  in.size(),   outputs, nullptr, 0,          cancel};
  return Status(row->ref(row->self, &call));
}

// What the row says a node costs; zeros where it says nothing.
inline Status cost_of(tenon::Node node, double* flops, double* bytes) {
  const tn_op* row = node.row();
  *flops = *bytes = 0;
  return row && row->cost ? Status(row->cost(row->self, node.graph, node.id, flops, bytes))
                          : Status();
}

}  // namespace tenon::backend
