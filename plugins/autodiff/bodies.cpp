// SPDX-License-Identifier: Apache-2.0
#include "bodies.hpp"

#include "interface.hpp"

namespace tenon::autodiff {

Graph body_of(Node node, std::string_view attribute) {
  tn_any any = node.attr(attribute);
  return {any.tag == TN_ANY_GRAPH ? static_cast<const tn_graph*>(any.v.p) : nullptr};
}

Result<Body> Body::begin(tn_ctx* ctx) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->create(ctx, &raw));
  OwnedGraph graph = OwnedGraph::take(raw);
  TN_TRY(edit, Edit::begin(raw));
  return Body{std::move(graph), std::move(edit)};
}

Result<Value> Body::input(const Type& type) const {
  return edit.input(cat("in", edit.graph().inputs().size()), type);
}

Result<Value> Body::capture(Value outer, std::vector<Value>& captured) const {
  if (outer.is_constant()) return edit.constant(outer.constant());
  captured.push_back(outer);
  return input(outer.type());
}

Result<std::vector<Value>> copy_into(EditView edit,
                                     Graph body,
                                     const std::vector<Value>& inputs,
                                     std::vector<Value>* inside) {
  std::vector<Value> theirs = body.inputs(), results = body.outputs(), out;
  if (theirs.size() != inputs.size())
    return invalid(cat("body: expected ", inputs.size(), " inputs, got ", theirs.size()));
  std::vector<tn_value_id> map;
  for (size_t i = 0; i < theirs.size(); ++i)
    map.insert(map.end(), {theirs[i].id, inputs[i].id});
  size_t given = map.size(), n_results = results.size();
  if (inside) results.insert(results.end(), inside->begin(), inside->end());
  for (Value result : results)
    map.insert(map.end(), {result.id, 0});
  TN_CHECK(services.edit->splice(edit.raw, body.raw, {}, map.data(), map.size() / 2));
  for (size_t i = 0; i < results.size(); ++i)
    out.push_back(edit.value(map[given + 2 * i + 1]));
  if (inside) inside->assign(out.begin() + static_cast<std::ptrdiff_t>(n_results), out.end());
  out.resize(n_results);
  return out;
}

Result<std::vector<Value>> Body::copy(Graph body,
                                      const std::vector<Value>& inputs,
                                      std::vector<Value>* inside) const {
  return copy_into(edit, body, inputs, inside);
}

Status Body::output(Value value) const {
  if (!value.producer() || value.is_output()) {
    TN_TRY(same, edit.op("Identity", {value}));
    value = same;
  }
  return edit.output(cat("out", edit.graph().outputs().size()), value);
}

Status Body::finish() {
  TN_CHECK(drop_dead_nodes(edit));
  TN_CHECK(inline_calls(edit));
  return edit.commit();
}

Result<Interface> scan_interface(Node node, Graph body) {
  if (!body.raw) return invalid("attribute body: expected a graph, got none");
  Interface out;
  out.n_scanned = static_cast<size_t>(std::max<int64_t>(0, node.attr_int("num_scan_inputs")));
  out.n_captures = static_cast<size_t>(std::max<int64_t>(0, node.attr_int("captures")));
  size_t rest = out.n_scanned + out.n_captures, n_results = body.outputs().size();
  if (out.n_scanned < 1 || node.n_inputs() < rest || n_results + rest < node.n_inputs())
    return invalid("expected states, then num_scan_inputs inputs");
  out.n_states = node.n_inputs() - rest;
  return out;
}

Result<Interface> loop_interface(Node node, Graph body) {
  if (!body.raw) return invalid("attribute body: expected a graph, got none");
  Interface out;
  out.n_first = 2;
  out.n_results = 1;
  out.n_captures = static_cast<size_t>(std::max<int64_t>(0, node.attr_int("captures")));
  size_t n_results = body.outputs().size();
  if (node.n_inputs() < 2 + out.n_captures || n_results + out.n_captures + 1 < node.n_inputs())
    return invalid("expected M, cond, states and captures");
  out.n_states = node.n_inputs() - 2 - out.n_captures;
  return out;
}

Type slice_type(Type type, int64_t axis) {
  if (!type.ranked || type.rank() == 0) return type;
  auto at = axis < 0 ? axis + static_cast<int64_t>(type.rank()) : axis;
  if (at < 0 || at >= static_cast<int64_t>(type.rank())) return type;
  type.dims.erase(type.dims.begin() + at);
  if (!type.symbols.empty()) type.symbols.erase(type.symbols.begin() + at);
  return type;
}

int64_t entry(const std::vector<int64_t>& list, size_t i) {
  return i < list.size() ? list[i] : 0;
}

}  // namespace tenon::autodiff
