// SPDX-License-Identifier: Apache-2.0
// The last rung: a Scan whose body is the node itself, over the entries of the batched inputs.
#include "batching.hpp"
#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

// The body: batched inputs as slices first, what all entries share after them.
Result<OwnedGraph> body_of(const BatchContext& c, Node node, const std::vector<Value>& order) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->create(c.edit.ctx(), &raw));
  OwnedGraph body = OwnedGraph::take(raw);
  TN_TRY(edit, Edit::begin(raw));
  std::unordered_map<tn_value_id, Value> ours;
  for (size_t i = 0; i < order.size(); ++i) {
    TN_TRY(input, edit.input(cat("in", i), order[i].type()));
    ours[order[i].id] = input;
  }
  std::vector<Value> inputs;
  for (Value input : node.inputs()) {
    if (input && input.is_constant() && !ours.count(input.id)) {
      TN_TRY(copy, edit.constant(input.constant()));
      ours[input.id] = copy;
    }
    inputs.push_back(input ? ours[input.id] : Value{});
  }
  Builder b(edit);
  Node made = again(b, node, inputs);
  TN_CHECK(b.status());
  for (uint64_t i = 0; i < node.n_outputs(); ++i)
    TN_CHECK(edit.output(cat("out", i), made.output(i)));
  TN_CHECK(edit.commit());
  return Result<OwnedGraph>(std::move(body));
}

}  // namespace

Status batch_by_loop(BatchContext& c, Node node) {
  std::vector<Value> scanned, shared;
  for (Value input : node.inputs()) {
    if (!input) continue;
    bool has_axis = !(form_of(c, input) == input);
    if (!has_axis && input.is_constant()) continue;
    std::vector<Value>& list = has_axis ? scanned : shared;
    if (std::find(list.begin(), list.end(), input) == list.end()) list.push_back(input);
  }
  std::vector<Value> order = scanned, inputs;
  order.insert(order.end(), shared.begin(), shared.end());
  for (Value input : order)
    inputs.push_back(form_of(c, input));
  TN_TRY(body, body_of(c, node, order));
  std::vector<Attr> attrs{{"body", any_graph(body.get())},
                          {"num_scan_inputs", static_cast<int64_t>(scanned.size())}};
  if (!shared.empty()) attrs.emplace_back("captures", static_cast<int64_t>(shared.size()));
  TN_TRY(scan,
         c.edit.add(
             {.type = "Scan", .inputs = inputs, .attrs = attrs, .n_outputs = node.n_outputs()}));
  for (uint64_t i = 0; i < node.n_outputs(); ++i)
    if (node.output(i)) c.batched[node.output(i).id] = scan.output(i);
  c.loops.push_back(described(node));
  return {};
}

}  // namespace tenon::autodiff
