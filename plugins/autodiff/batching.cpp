// SPDX-License-Identifier: Apache-2.0
#include "batching.hpp"

#include <algorithm>

#include "ragged.hpp"
#include "reverse.hpp"
#include "rules.hpp"

namespace tenon::autodiff {
namespace {

// Broadcasting aligns at the right, so the new axis of every input has to stand equally far left.
Status batch_pointwise(BatchContext& c, Node node) {
  Builder b(c.edit);
  size_t rank = 0;
  for (Value input : node.inputs())
    if (input) rank = std::max(rank, b.ranked(input, node.type()).rank());
  TN_CHECK(b.status());
  std::vector<Value> inputs;
  for (Value input : node.inputs()) {
    Value form = form_of(c, input);
    bool has_axis = input && !(form == input);
    inputs.push_back(has_axis ? lifted(b, form, rank - input.type().rank()) : form);
  }
  Node made = again(b, node, inputs);
  TN_CHECK(b.status());
  c.batched[node.output().id] = made.output();
  return {};
}

// The bytes of each entry stay in order.
Status batch_view(BatchContext& c, Node node) {
  Builder b(c.edit);
  Value x = form_of(c, node.input(0));
  std::vector<int64_t> dims = b.fixed(node.output(), node.type()).dims;
  if (x == node.input(0)) return unsupported("only its data may have the new axis");
  dims.insert(dims.begin(), 1);
  Value y = for_examples(b, c, x, dims, x);
  TN_CHECK(b.status());
  c.batched[node.output().id] = y;
  return {};
}

// A rule gets the values of all examples; one that reads those of one example, its own output's
// shape say, would keep the graph of one example alive.
Status reads_none_of_one(const BatchContext& c, Node node, uint64_t first) {
  for (uint64_t i = first, n = c.edit.graph().n_nodes(); i < n; ++i)
    for (Value input : c.edit.graph().node(i).inputs())
      if (input && (c.batched.count(input.id) || input.producer().id == node.id))
        return {TN_INTERNAL, cat("the batch rule of ", node.type(), " reads ", input.name(),
                                 ", which is of one example")};
  return {};
}

Status batch_by_row(BatchContext& c, Node node, const tn_op* row) {
  std::vector<tn_value_id> in, out(node.n_outputs(), 0);
  std::vector<uint8_t> marks, out_marks(node.n_outputs(), 0);
  for (Value input : node.inputs()) {
    Value form = form_of(c, input);
    in.push_back(form.id);
    marks.push_back(input && !(form == input));
  }
  uint64_t first = c.edit.graph().n_nodes();
  TN_CHECK(row->batch(row->self, c.edit.raw, node.id, in.data(), marks.data(), out.data(),
                      out_marks.data()));
  TN_CHECK(reads_none_of_one(c, node, first));
  for (size_t i = 0; i < out.size(); ++i) {
    Value output = node.output(i);
    if (!output || out[i] == 0) continue;
    if (out_marks[i])
      c.batched[output.id] = c.edit.value(out[i]);
    else
      TN_CHECK(c.edit.replace(output, c.edit.value(out[i])));
  }
  return {};
}

// What decompose made, in order of creation.
Result<std::vector<Node>> parts_of(BatchContext& c, Node node) {
  uint64_t before = c.edit.graph().n_nodes();
  std::vector<tn_value_id> old;
  TN_CHECK(services.op->decompose(c.edit.raw, node.id));
  std::vector<Node> parts;
  for (uint64_t i = before - 1, n = c.edit.graph().n_nodes(); i < n; ++i)
    parts.push_back(c.edit.graph().node(i));
  return parts;
}

bool next_rung(const Status& status) {
  return !status.ok() && status.code() == TN_UNIMPLEMENTED;
}

Result<std::vector<Node>> by_ladder(BatchContext& c, Node node) {
  const tn_op* row = node.row();
  Called called = function_of(node);
  if (called.vjp) {
    TN_CHECK(batch_function(c, node));
    return std::vector<Node>{};
  }
  bool composite = bool(called) || (row && row->decompose);
  if (row && row->batch) {
    Status done = batch_by_row(c, node, row);
    if (!next_rung(done)) {
      TN_CHECK(std::move(done));
      return std::vector<Node>{};
    }
  }
  if (row && (row->traits & TN_OP_MIXES_BATCH))
    return invalid(
        "it mixes the examples of a batch; use its form for inference, or one that treats examples "
        "alone (GroupNormalization, LayerNormalization)");
  if (row && (row->traits & TN_OP_POINTWISE)) {
    TN_CHECK(batch_pointwise(c, node));
    return std::vector<Node>{};
  }
  const tn_axes* axes = nullptr;
  if (row && row->axes.len > 0) {
    TN_CHECK(services.op->axes(row, &axes));
    TN_TRY(done, batch_by_axes(c, node, *axes));
    if (done) return std::vector<Node>{};
  }
  if (row && (row->traits & TN_OP_VIEW)) {
    TN_CHECK(batch_view(c, node));
    return std::vector<Node>{};
  }
  if (composite) {
    Result<std::vector<Node>> parts = parts_of(c, node);
    if (parts.ok()) return parts;
    Status failed = std::move(parts).status();  // parts says nothing of itself after this
    if (!next_rung(failed)) return failed;
  }
  if (row && (row->traits & TN_OP_CONTROL)) return batch_control(c, node);
  if (!row) return unsupported("no batch rule: no loaded plugin brings this operator");
  TN_CHECK(batch_by_loop(c, node));
  return std::vector<Node>{};
}

// What reads only a shape goes on reading that of one example.
Status keep_shape(const BatchContext& c, Node node) {
  Builder b(c.edit);
  for (uint64_t i = 0; i < node.n_inputs(); ++i) {
    Value input = node.input(i);
    if (!input || !c.batched.count(input.id)) continue;
    Value dims = input.type().is_static() ? b.ints(input.type().dims)
                                          : b.op("Shape", {form_of(c, input)}, {{"start", 1}});
    Value stand_in = b.op("Expand", {b.number(0, input.dtype()), dims});
    TN_CHECK(b.status());
    TN_CHECK(c.edit.set_input(node, i, stand_in));
  }
  return {};
}

bool is_random(Node node) {
  const tn_op* row = node.row();
  return row && (row->traits & TN_OP_RANDOM) != 0;
}

Status refuse_random(const std::string& who) {
  return invalid(who +
                 ": random numbers under vmap: option random: expected same (one draw for all "
                 "examples) or different (one for each), got error");
}

// On inputs that all have the axis, for then it draws for all.
Result<std::vector<Node>> draw_for_each(BatchContext& c, Node node) {
  Builder b(c.edit);
  std::vector<Value> added;
  for (Value input : node.inputs()) {
    if (!input || c.batched.count(input.id)) continue;
    Value wide = with_axis(b, c, input);
    TN_CHECK(b.status());
    c.batched[input.id] = wide;
    added.push_back(input);
  }
  Result<std::vector<Node>> parts = batch_node(c, node);
  for (Value input : added)
    c.batched.erase(input.id);
  return parts;
}

// Of an operator with parts each draws or does not: Dropout in inference is no draw.
Result<std::vector<Node>> batch_random(BatchContext& c, Node node) {
  std::string who = described(node);
  if (node.row()->decompose) {
    TN_TRY(parts, parts_of(c, node));
    bool draws = std::any_of(parts.begin(), parts.end(), is_random);
    if (draws && c.random == RandomMode::kError) return refuse_random(who);
    return parts;
  }
  if (c.random == RandomMode::kError) return refuse_random(who);
  if (c.random == RandomMode::kDifferent) return draw_for_each(c, node);
  if (!has_batched_input(c, node)) return std::vector<Node>{};
  if (node.row()->traits & TN_OP_READS_SHAPE)
    TN_CHECK(keep_shape(c, node));
  else
    TN_CHECK(batch_by_loop(c, node));
  return std::vector<Node>{};
}

}  // namespace

Value with_axis(Builder& b, const BatchContext& c, Value value) {
  if (auto found = c.batched.find(value.id); found != c.batched.end()) return found->second;
  Value first = c.batched.empty() ? Value{} : c.batched.begin()->second;
  Value n = c.size >= 0 || !first ? b.ints({std::max<int64_t>(c.size, 1)})
                                  : b.op("Shape", {first}, {{"start", 0}, {"end", 1}});
  Value shape = b.op("Concat", {n, b.shape_of(value)}, {{"axis", 0}});
  return b.op("Expand", {value, shape});
}

Status batch_nodes(BatchContext& c, const std::vector<Value>& outputs, const Cancel& cancel) {
  std::vector<Node> order = nodes_behind(outputs);
  std::deque<Node> work(order.begin(), order.end());
  while (!work.empty()) {
    Node node = work.front();
    work.pop_front();
    TN_CHECK(cancel.check());
    bool random = is_random(node);
    const bool is_ragged = reads_ragged(c, node);
    if (is_ragged) TN_CHECK(pass_ragged(c, node));
    if (!random && !has_batched_input(c, node) && !(is_ragged && node.is("Scan"))) continue;
    if (!random && node.row() && (node.row()->traits & TN_OP_READS_SHAPE)) {
      TN_CHECK(keep_shape(c, node));
      continue;
    }
    TN_TRY(parts, random ? batch_random(c, node) : batch_node(c, node));
    work.insert(work.begin(), parts.begin(), parts.end());
  }
  for (Value output : outputs)
    if (c.ragged.count(output.id)) return refuse_ragged(output.producer());
  return {};
}

bool has_batched_input(const BatchContext& c, Node node) {
  std::vector<Value> inputs = node.inputs();
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](Value v) { return v && c.batched.count(v.id) > 0; });
}

Value form_of(const BatchContext& c, Value input) {
  auto found = input ? c.batched.find(input.id) : c.batched.end();
  return found == c.batched.end() ? input : found->second;
}

Value lifted(Builder& b, Value x, size_t n_ones) {
  if (n_ones == 0) return x;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < n_ones; ++i)
    axes.push_back(static_cast<int64_t>(i + 1));
  return b.op("Unsqueeze", {x, b.ints(axes)});
}

Result<std::vector<Node>> batch_node(BatchContext& c, Node node) {
  std::string who = described(node);
  std::string scope(node.scope());
  TN_CHECK(services.edit->set_scope(c.edit.raw, 0, str(scope)));
  Result<std::vector<Node>> parts = by_ladder(c, node);
  TN_CHECK(services.edit->set_scope(c.edit.raw, 0, {}));
  if (!parts.ok()) return std::move(parts).status().in(who);
  return parts;
}

Value for_examples(
    Builder& b, const BatchContext& c, Value x, std::vector<int64_t> dims, Value batched) {
  if (c.size >= 0) {
    dims[0] *= c.size;
    return b.reshape(x, dims);
  }
  if (std::count(dims.begin(), dims.end(), 0) == 0) {
    dims[0] = -1;
    return b.reshape(x, dims);
  }
  Value n = b.op("Shape", {batched}, {{"start", 0}, {"end", 1}});  // of nothing, -1 is any size
  if (dims[0] != 1) n = b.mul(n, b.ints({dims[0]}));
  Value shape = b.op("Concat", {n, b.ints({dims.begin() + 1, dims.end()})}, {{"axis", 0}});
  return b.op("Reshape", {x, shape}, {{"allowzero", 1}});
}

}  // namespace tenon::autodiff
