// SPDX-License-Identifier: Apache-2.0
// Service "tenon.host.op/1".
#include "graph/edit.hpp"
#include "graph/op_table.hpp"

namespace tenon::host {
namespace {

const tn_op* op_of(const OpRow* row) {
  return row ? &row->op : nullptr;
}

const tn_op* find_op(tn_ctx* ctx, tn_str domain, tn_str type) {
  return op_of(ctx->session->ops->find(view(domain), view(type)));
}

const OpRow* row_of(const tn_graph* graph, tn_node_id id) {
  const Node* node = graph->tables->nodes.find(id);
  bool plain = node && !graph->tables->function(node->domain, node->type);
  return plain ? graph->ctx->session->ops->find(node->domain, node->type) : nullptr;
}

const tn_op* of(const tn_graph* graph, tn_node_id id) {
  return op_of(row_of(graph, id));
}

uint64_t count(tn_ctx* ctx) {
  return ctx->session->ops->size();
}

const tn_op* at(tn_ctx* ctx, uint64_t i) {
  return op_of(ctx->session->ops->at(i));
}

tn_status* expr(const tn_graph* graph, tn_node_id id, const tn_expr_program** out) {
  *out = nullptr;
  return guarded([&]() -> Status {
    const Node* node = graph->tables->nodes.find(id);
    if (!node) return stale_node(id);
    const OpRow* row = row_of(graph, id);
    if (!row) return not_found(cat(node_text(*node), ": no loaded plugin brings this operator"));
    TN_TRY(program, row->program(*graph, *node));
    *out = program;
    return {};
  });
}

tn_status* axes(const tn_op* op, const tn_axes** out) {
  *out = nullptr;
  return guarded([&]() -> Status {
    const OpRow* row = OpRow::of(op);
    if (!row) return invalid("axes: expected a row that the host has handed out");
    if (!row->axes) return not_found(cat(row->text(), ": the row has no axes"));
    *out = &row->axes_view;
    return {};
  });
}

tn_status* decompose(tn_edit* edit, tn_node_id id) {
  return guarded([&] { return edit->decompose(id); });
}

}  // namespace

const tn_host_op* op_service() {
  static const tn_host_op table{sizeof table, 1, find_op, of, count, at, expr, axes, decompose};
  return &table;
}

}  // namespace tenon::host
