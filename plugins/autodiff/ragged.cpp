// SPDX-License-Identifier: Apache-2.0
#include "ragged.hpp"

#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

// Of all ragged inputs, which must be of one loop; none where there are none.
std::optional<Value> mask_of(const BatchContext& c,
                             const std::vector<Value>& inputs,
                             bool& differ) {
  std::optional<Value> mask;
  for (Value input : inputs) {
    auto found = input ? c.ragged.find(input.id) : c.ragged.end();
    if (found == c.ragged.end()) continue;
    differ = differ || (mask && !(*mask == found->second));
    mask = found->second;
  }
  return mask;
}

// The entries in the other order, for one example and for all.
Result<Value> reversed(BatchContext& c, Value mask) {
  Builder b(c.edit);
  auto along = [&](Value x, int64_t axis) {
    return b.op("Slice", {x, b.ints({-1}), b.ints({INT64_MIN}), b.ints({axis}), b.ints({-1})});
  };
  Value one = along(mask, 0);
  Value wide = along(c.batched.at(mask.id), 1);
  TN_CHECK(b.status());
  c.batched[one.id] = wide;
  return one;
}

// Steps of a Scan: where one is not the example's own, its states stay as they are.
Result<OwnedGraph> masked_body(EditView edit, Graph body, const Interface& parts) {
  TN_TRY(made, Body::begin(edit.ctx()));
  Builder b(made.edit);
  std::vector<Value> theirs = body.inputs(), ours;
  Value active;
  for (size_t i = 0; i <= theirs.size(); ++i) {
    if (i == parts.captures()) {
      TN_TRY(input, made.input(Type(TN_BOOL, {})));
      active = input;
    }
    if (i == theirs.size()) break;
    TN_TRY(input, made.input(theirs[i].type()));
    ours.push_back(input);
  }
  TN_TRY(results, made.copy(body, ours));
  for (size_t i = 0; i < results.size(); ++i) {
    if (i < parts.n_states) results[i] = b.op("Where", {active, results[i], ours[i]});
    TN_CHECK(b.status());
    TN_CHECK(made.output(results[i]));
  }
  TN_CHECK(made.finish());
  return std::move(made.graph);
}

bool is_pointwise(Node node) {
  const tn_op* row = node.row();
  return row && (row->traits & TN_OP_POINTWISE);
}

// A Scan's own scan outputs are as long as what it walks along; which entries are whose follows
// from the directions.
Status mark_scans(BatchContext& c, Node node, Value mask) {
  TN_TRY(parts, scan_interface(node, body_of(node, "body")));
  std::vector<int64_t> axes = node.attr_ints("scan_output_axes"),
                       ways = node.attr_ints("scan_output_directions"),
                       in = node.attr_ints("scan_input_directions");
  std::optional<Value> other;
  for (uint64_t i = parts.n_states; i < node.n_outputs(); ++i) {
    if (!node.output(i)) continue;
    const size_t scan = i - parts.n_states;
    if (entry(axes, scan) != 0) return refuse_ragged(node);
    const bool turns = entry(ways, scan) != entry(in, parts.n_scanned - 1);
    if (turns && !other) {
      TN_TRY(backwards, reversed(c, mask));
      other = backwards;
    }
    c.ragged[node.output(i).id] = turns ? *other : mask;
  }
  return {};
}

}  // namespace

Result<Value> add_mask(BatchContext& c, Value scan, Value wide) {
  Builder b(c.edit);
  Value yes = b.take(c.edit.constant<uint8_t>(TN_BOOL, {}, std::vector<uint8_t>{1}));
  Value length = b.op("Shape", {scan}, {{"start", 0}, {"end", 1}});
  Value one = b.op("Expand", {yes, length});
  TN_CHECK(b.status());
  c.batched[one.id] = wide;
  return one;
}

bool reads_ragged(const BatchContext& c, Node node) {
  std::vector<Value> inputs = node.inputs();
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](Value v) { return v && c.ragged.count(v.id) > 0; });
}

Result<std::optional<Node>> masked_scan(BatchContext& c,
                                        Node node,
                                        Graph body,
                                        const Interface& parts) {
  std::vector<Value> inputs = node.inputs();
  const size_t end = parts.captures();
  bool differ = false;
  std::optional<Value> mask = mask_of(c, inputs, differ);
  if (!mask || (parts.n_scanned > 1 && inputs[end - 1] == *mask)) return std::optional<Node>();
  std::vector<int64_t> axes = node.attr_ints("scan_input_axes"),
                       ways = node.attr_ints("scan_input_directions");
  std::optional<int64_t> way;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] || !c.ragged.count(inputs[i].id)) continue;
    const bool is_walked = i >= parts.scanned() && i < end;
    const size_t scan = i - parts.scanned();
    if (!is_walked || differ || entry(axes, scan) != 0 || (way && *way != entry(ways, scan)))
      return refuse_ragged(node);
    way = entry(ways, scan);
  }
  TN_TRY(made, masked_body(c.edit, body, parts));
  axes.resize(parts.n_scanned);
  ways.resize(parts.n_scanned);
  axes.push_back(0);
  ways.push_back(*way);
  inputs.insert(inputs.begin() + static_cast<std::ptrdiff_t>(end), *mask);
  Builder b(c.edit);
  Node masked = again(b, node, inputs,
                      {{"body", any_graph(made.get())},
                       {"num_scan_inputs", static_cast<int64_t>(parts.n_scanned + 1)},
                       {"scan_input_axes", axes},
                       {"scan_input_directions", ways}});
  TN_CHECK(b.status());
  for (uint64_t i = 0; i < node.n_outputs(); ++i)
    if (node.output(i)) TN_CHECK(c.edit.replace(node.output(i), masked.output(i)));
  TN_CHECK(c.edit.erase(node));
  return std::optional(masked);
}

Status pass_ragged(BatchContext& c, Node node) {
  std::vector<Value> inputs = node.inputs();
  bool differ = false;
  std::optional<Value> mask = mask_of(c, inputs, differ);
  if (differ) return refuse_ragged(node);
  if (node.is("Scan")) {
    TN_TRY(parts, scan_interface(node, body_of(node, "body")));
    const bool is_masked = inputs[parts.captures() - 1] == *mask;
    return is_masked ? mark_scans(c, node, *mask) : Status();  // its masked form comes back here
  }
  if (!is_pointwise(node)) return refuse_ragged(node);
  for (Value input : inputs) {
    const bool is_number = input && input.type().ranked && input.type().rank() == 0;
    if (input && !is_number && !c.ragged.count(input.id)) return refuse_ragged(node);
  }
  c.ragged[node.output().id] = *mask;
  return {};
}

Status refuse_ragged(Node by) {
  return unsupported(cat(
      described(by),
      ": the number of iterations of a loop before it differs by example, and what it reads would "
      "have as many lengths; take the gradient of the sum over the examples of the batched "
      "function, or loop a fixed number of times and keep what has ended by Where"));
}

}  // namespace tenon::autodiff
