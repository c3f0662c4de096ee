// SPDX-License-Identifier: Apache-2.0
// Services "tenon.host.op/1" and "tenon.host.op_columns/1".
#include <algorithm>

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
  return plain ? graph->ctx->session->ops->find(*graph->tables, node->domain, node->type) : nullptr;
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
  return guarded_out(out, [&]() -> Result<const tn_expr_program*> {
    const Node* node = graph->tables->nodes.find(id);
    if (!node) return stale_node(id);
    const OpRow* row = row_of(graph, id);
    if (!row) return not_found(cat(node_text(*node), ": no loaded plugin brings this operator"));
    return row->program(*graph, *node);
  });
}

tn_status* axes(const tn_op* op, const tn_axes** out) {
  return guarded_out(out, [&]() -> Result<const tn_axes*> {
    const OpRow* row = OpRow::of(op);
    if (!row) return invalid("axes: expected a row that the host has handed out");
    if (!row->axes) return not_found(cat(row->text(), ": the row has no axes"));
    return &row->axes_view;
  });
}

tn_status* decompose(tn_edit* edit, tn_node_id id) {
  return guarded([&] { return edit->decompose(id); });
}

template <class Number>
void evaluate_as(const tn_expr_program& program,
                 std::span<const void* const> in,
                 uint64_t n,
                 void* out) {
  std::vector<const Number*> arrays;
  for (const void* array : in)
    arrays.push_back(static_cast<const Number*>(array));
  tenon::host::evaluate(program, arrays, std::span(static_cast<Number*>(out), n));
}

tn_status* evaluate(
    const tn_expr_program* program, const void* const* in, uint64_t n_in, uint64_t n, void* out) {
  return guarded([&]() -> Status {
    std::span inputs(in, n_in);
    std::string why = why_malformed(*program, inputs);
    if (!why.empty()) return invalid(cat("evaluate: ", why));
    bool is_real = program->domain == TN_EXPR_DOMAIN_FLOAT;
    (is_real ? evaluate_as<double> : evaluate_as<int64_t>)(*program, inputs, n, out);
    return {};
  });
}

const tn_op_columns* columns(const tn_op* op) {
  const OpRow* row = OpRow::of(op);
  return row ? &row->columns_view : nullptr;
}

tn_status* layout(const tn_graph* graph,
                  tn_node_id id,
                  tn_axes_place* out,
                  uint64_t capacity,
                  uint64_t* out_count) {
  *out_count = 0;
  return guarded([&]() -> Status {
    const Node* node = graph->tables->nodes.find(id);
    if (!node) return stale_node(id);
    const OpRow* row = row_of(graph, id);
    if (!row || !row->axes) return not_found(cat(node_text(*node), ": its operator has no axes"));
    Parsed<AxesLayout> laid = row->layout(*graph, *node);
    if (!laid) return invalid(cat(node_text(*node), ": axes: ", laid.error().text()));
    *out_count = laid->all.size();
    for (uint64_t i = 0; i < std::min<uint64_t>(capacity, laid->all.size()); ++i) {
      const AxesPlace& place = laid->all[i];
      out[i] = {place.term, place.operand, place.axis, place.count, place.first, 0};
    }
    return {};
  });
}

}  // namespace

const tn_host_op* op_service() {
  static const tn_host_op table{sizeof table, 1,    find_op, of,        count,
                                at,           expr, axes,    decompose, evaluate};
  return &table;
}

const tn_host_op_columns* op_columns_service() {
  static const tn_host_op_columns table{sizeof table, 1, columns, layout};
  return &table;
}

}  // namespace tenon::host
