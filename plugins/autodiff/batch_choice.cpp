// SPDX-License-Identifier: Apache-2.0
// vmap through an If whose condition differs by example.
#include "batch_choice.hpp"

#include <unordered_set>

#include "bodies.hpp"

namespace tenon::autodiff {
namespace {

// Whether a branch only moves numbers and computes element by element: of examples that do not take
// it, it then gives numbers that nobody reads. Others may refuse them (an index that is none, a
// matrix without an inverse).
bool takes_any_numbers(Graph branch) {
  for (Node node : branch.nodes()) {
    const tn_op* row = node.row();
    if (!row || !(row->traits & (TN_OP_POINTWISE | TN_OP_VIEW))) return false;
  }
  return true;
}

Result<OwnedGraph> zeros_like_outputs(EditView edit, Node node) {
  TN_TRY(made, Body::begin(edit.ctx()));
  for (uint64_t i = 1; i < node.n_inputs(); ++i)
    TN_CHECK(made.input(node.input(i).type()).status());
  for (Value output : node.outputs()) {
    TN_TRY(zeros, Tensor::zeros(edit.ctx(), output.dtype(), output.type().dims));
    TN_TRY(constant, made.edit.constant(zeros));
    TN_CHECK(made.output(constant));
  }
  TN_CHECK(made.finish());
  return std::move(made.graph);
}

// The first example that takes the branch, as an index [1]; [0] where there are no examples.
Value first_of(Builder& b, const BatchContext& c, Value counted) {
  if (c.size > 0) return b.op("ArgMax", {counted}, {{"axis", 0}});
  Value more = b.op("Concat", {counted, b.ints({0})}, {{"axis", 0}});
  Value first = b.op("ArgMax", {more}, {{"axis", 0}});
  return b.op("Slice", {first, b.ints({0}), b.op("Shape", {counted})});
}

// One branch for the examples that take it: the others get the inputs of the first that does, and
// where none does, it does not run. `part` is the node to be batched.
Result<std::vector<Value>> guarded_branch(
    BatchContext& c, Node node, Graph branch, bool is_then, Node& part) {
  Builder b(c.edit);
  Value takes = b.reshape(c.batched.at(node.input(0).id), {-1});
  if (!is_then) takes = b.op("Not", {takes});
  Value counted = b.cast(takes, TN_I64);
  Value first = first_of(b, c, counted);
  Value count = b.sum(counted, {0}, false);
  Value any = b.op("Greater", {count, b.reshape(b.ints({0}), {})});
  std::vector<Value> inputs{any};
  for (uint64_t i = 1; i < node.n_inputs(); ++i) {
    Value input = node.input(i);
    auto wide = input ? c.batched.find(input.id) : c.batched.end();
    inputs.push_back(input);
    if (wide == c.batched.end()) continue;
    std::vector<int64_t> column(b.ranked(input, "If").rank() + 1, 1);
    column[0] = -1;
    Value theirs = b.op("Gather", {wide->second, first}, {{"axis", 0}});
    Value safe = b.op("Where", {b.reshape(takes, column), wide->second, theirs});
    inputs.back() = b.op("Identity", {input});  // stands for one example of `safe`
    TN_CHECK(b.status());
    c.batched[inputs.back().id] = safe;
  }
  TN_TRY(zeros, zeros_like_outputs(c.edit, node));
  part = again(b, node, inputs,
               {{"then_branch", any_graph(branch.raw)}, {"else_branch", any_graph(zeros.get())}});
  TN_CHECK(b.status());
  return part.outputs();
}

bool can_be_guarded(const BatchContext& c, Node node) {
  auto is_tensor = [](Value v) { return v && v.type().kind == TN_KIND_TENSOR && v.type().ranked; };
  for (Value output : node.outputs())
    if (!is_tensor(output) || !output.type().is_static()) return false;
  for (uint64_t i = 1; i < node.n_inputs(); ++i)
    if (c.batched.count(node.input(i).id) && !is_tensor(node.input(i))) return false;
  return c.size != 0;
}

// The slope of a branch may be infinite at an example that does not take it (log at 0), and 0 times
// that is NaN. So where a branch reads numbers of an example they pass a gate, a Where that gives
// both ways the number itself, but a gradient only to the examples that take the branch.
class Gates {
 public:
  Gates(BatchContext& c, Value condition, bool is_then)
      : c_(c), condition_(condition), is_then_(is_then) {}

  // Appends the node of the branch to parts, behind the gates that its operands need.
  Status add(Node node, std::vector<Node>& parts) {
    const bool differs = std::ranges::any_of(
        node.inputs(), [&](Value x) { return c_.batched.count(x.id) || differs_.count(x.id); });
    const bool computes = (node.row()->traits & TN_OP_POINTWISE) != 0;
    for (uint64_t i = 0; differs && computes && i < node.n_inputs(); ++i)
      if (needs_gate(node.input(i))) TN_CHECK(gate(node, i, parts));
    for (Value output : node.outputs()) {
      if (differs) differs_.insert(output.id);
      if (differs && computes) behind_.insert(output.id);
    }
    parts.push_back(node);
    return {};
  }

 private:
  bool needs_gate(Value x) const {
    return x && is_float(x.dtype()) && !x.is_constant() && !behind_.count(x.id);
  }

  Status gate(Node node, uint64_t i, std::vector<Node>& parts) {
    Value x = node.input(i);
    Value& gated = made_[x.id];
    if (!gated) {
      Builder b(c_.edit);
      Node same = b.node({.type = "StopGradient", .inputs = {x}, .domain = "tenon"});
      TN_CHECK(b.status());
      Value then = is_then_ ? x : same.output(0), otherwise = is_then_ ? same.output(0) : x;
      gated = b.op("Where", {condition_, then, otherwise});
      TN_CHECK(b.status());
      parts.insert(parts.end(), {same, gated.producer()});
    }
    return c_.edit.set_input(node, i, gated);
  }

  BatchContext& c_;
  Value condition_;
  bool is_then_;
  Batched made_;
  std::unordered_set<tn_value_id> differs_;  // by example
  std::unordered_set<tn_value_id> behind_;   // gates
};

}  // namespace

Result<std::vector<Node>> batch_choice(BatchContext& c, Node node, const Graph* branches) {
  Builder b(c.edit);
  std::vector<Value> results[2];
  std::vector<Node> parts;
  auto add_parts = [&](uint64_t before) {
    for (uint64_t i = before, n = c.edit.graph().n_nodes(); i < n; ++i)
      parts.push_back(c.edit.graph().node(i));
  };
  uint64_t before = c.edit.graph().n_nodes();
  Value condition = b.reshape(node.input(0), {});
  TN_CHECK(b.status());
  add_parts(before);
  for (int side = 0; side < 2; ++side) {
    if (!takes_any_numbers(branches[side]) && can_be_guarded(c, node)) {
      Node part;
      TN_TRY(guarded, guarded_branch(c, node, branches[side], side == 0, part));
      results[side] = guarded;
      parts.push_back(part);
      continue;
    }
    std::vector<Value> inputs = node.inputs();
    inputs.erase(inputs.begin());
    Gates gates(c, condition, side == 0);
    before = c.edit.graph().n_nodes();
    TN_TRY(copied, copy_into(c.edit, branches[side], inputs));
    results[side] = copied;
    for (uint64_t i = before, n = c.edit.graph().n_nodes(); i < n; ++i)
      TN_CHECK(gates.add(c.edit.graph().node(i), parts));
  }
  before = c.edit.graph().n_nodes();
  for (uint64_t i = 0; i < node.n_outputs(); ++i) {
    if (!node.output(i)) continue;
    Value choice = b.op("Where", {condition, results[0][i], results[1][i]});
    TN_CHECK(b.status());
    TN_CHECK(c.edit.replace(node.output(i), choice));
  }
  add_parts(before);
  TN_CHECK(c.edit.erase(node));
  return parts;
}

}  // namespace tenon::autodiff
