// SPDX-License-Identifier: Apache-2.0
// vmap through an If whose condition differs by example.
#include "batch_choice.hpp"

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

}  // namespace

Result<std::vector<Node>> batch_choice(BatchContext& c, Node node, const Graph* branches) {
  Builder b(c.edit);
  std::vector<Value> results[2];
  std::vector<Node> parts;
  auto add_parts = [&](uint64_t before) {
    for (uint64_t i = before, n = c.edit.graph().n_nodes(); i < n; ++i)
      parts.push_back(c.edit.graph().node(i));
  };
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
    uint64_t before = c.edit.graph().n_nodes();
    TN_TRY(copied, copy_into(c.edit, branches[side], inputs));
    results[side] = copied;
    add_parts(before);
  }
  uint64_t before = c.edit.graph().n_nodes();
  Value condition = b.reshape(node.input(0), {});
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
