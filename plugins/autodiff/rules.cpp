// SPDX-License-Identifier: Apache-2.0
#include "rules.hpp"

#include "control_grad.hpp"
#include "pointwise_rule.hpp"
#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

bool has_expr(const tn_op* row) {
  return row && (row->traits & TN_OP_POINTWISE) && row->expr.len > 0;
}

// The gradient graph of a function takes the function's inputs, then one cotangent for each output,
// and gives one gradient for each input.
Status own_gradient(Gradients& g, const Called& called) {
  Graph vjp{called.vjp};
  Node node = g.of();
  uint64_t n_in = node.n_inputs(), n_out = node.n_outputs();
  if (vjp.inputs().size() != n_in + n_out || vjp.outputs().size() != n_in)
    return invalid(cat("its gradient graph: expected ", n_in, " inputs and ", n_out,
                       " cotangents in and ", n_in, " gradients out, got ", vjp.inputs().size(),
                       " in and ", vjp.outputs().size(), " out"));
  std::vector<tn_value_id> map;
  for (uint64_t i = 0; i < n_in + n_out; ++i) {
    Value ours = i < n_in ? node.input(i) : g.cotangent(i - n_in);
    if (!ours) ours = g.zeros_like(i < n_in ? vjp.inputs()[i] : node.output(i - n_in));
    map.insert(map.end(), {vjp.inputs()[i].id, ours.id});
  }
  size_t given = map.size();
  for (Value output : vjp.outputs())
    map.insert(map.end(), {output.id, 0});
  TN_CHECK(services.edit->splice(g.edit().raw, called.vjp, {}, map.data(), map.size() / 2));
  for (uint64_t i = 0; i < n_in; ++i)
    if (g.wanted(i)) g.set(i, g.edit().value(map[given + 2 * i + 1]));
  return {};
}

Status by_ladder(Gradients& g) {
  Node node = g.of();
  if (Called called = function_of(node); called.vjp) return own_gradient(g, called);
  const tn_op* row = node.row();
  if (has_expr(row)) return pointwise_rule(g);
  if (row && (row->traits & TN_OP_VIEW)) {
    if (g.wanted(0)) g.set(0, g.reshape_like(g.cotangent(), node.input(0)));
    return {};
  }
  if (row && (row->traits & TN_OP_CONTROL)) return control_gradient(g);
  return unsupported(row ? "no gradient: its row would need one of the columns vjp, expr, decompose"
                         : "no gradient: no loaded plugin brings this operator");
}

}  // namespace

Called function_of(Node node) {
  Called out;
  for (uint64_t i = 0, n = services.graph->count(node.graph, TN_LIST_FUNCTIONS); i < n; ++i) {
    tn_str domain{}, type{};
    Called called;
    Status stale(
        services.graph->function_at(node.graph, i, &domain, &type, &called.body, &called.vjp));
    if (stale.ok() && view(type) == node.type() && view(domain) == node.domain()) return called;
  }
  return out;
}

bool is_composite(Node node) {
  if (Called called = function_of(node)) return called.vjp == nullptr;
  const tn_op* row = node.row();
  return row && !row->vjp && row->decompose && !has_expr(row) && !(row->traits & TN_OP_VIEW);
}

bool stops_gradients(Node node) {
  const tn_op* row = node.row();
  return row && (row->traits & TN_OP_READS_SHAPE) != 0;
}

bool carries_gradient(Node node, Value output) {
  if (is_float(output.dtype())) return true;
  const tn_op_columns* columns = node.columns();
  return columns && columns->quant == TN_QUANT_QUANTIZE;
}

Status differentiate(const EditView& edit,
                     Node node,
                     const std::vector<Value>& cotangents,
                     const std::vector<uint8_t>& wanted,
                     std::vector<tn_value_id>& gradients) {
  std::vector<tn_value_id> ids;
  for (Value value : cotangents)
    ids.push_back(value.id);
  gradients.assign(wanted.size(), 0);
  const tn_op* row = node.row();
  Status failed = row && row->vjp ? Status(row->vjp(row->self, edit.raw, node.id, ids.data(),
                                                    wanted.data(), gradients.data()))
                                  : Status(vjp<by_ladder>(nullptr, edit.raw, node.id, ids.data(),
                                                          wanted.data(), gradients.data()));
  return std::move(failed).in(described(node));
}

}  // namespace tenon::autodiff
