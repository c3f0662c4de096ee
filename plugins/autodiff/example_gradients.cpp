// SPDX-License-Identifier: Apache-2.0
#include "example_gradients.hpp"

#include <algorithm>

#include "batching.hpp"
#include "reverse.hpp"
#include "rules.hpp"

namespace tenon::autodiff {
namespace {

// A stand-in for one example, an input of the graph until dead nodes are gone.
Result<Value> stand_in(const EditView& edit, Type type, bool is_sliced) {
  if (is_sliced) {
    type.dims[0] = 1;
    if (!type.symbols.empty()) type.symbols[0].clear();
  }
  return edit.input(cat(kStandIn, edit.graph().inputs().size()), type);
}

}  // namespace

Status remove_stand_ins(const EditView& edit) {
  for (uint64_t i = edit.graph().inputs().size(); i-- > 0;)
    if (edit.graph().input_name(i).starts_with(kStandIn))
      TN_CHECK(services.edit->remove_input(edit.raw, i));
  return {};
}

Status ExampleGradients::plan(Value value) {
  if (readers_.count(value.id)) return {};
  std::vector<Node> readers;
  for (uint64_t i = 0; i < value.consumer_count(); ++i) {
    Node node = value.consumer(i);
    bool is_known = std::ranges::any_of(readers, [&](Node one) { return one.id == node.id; });
    if (!is_known && examples_->is_behind(node) && !stops_gradients(node)) readers.push_back(node);
  }
  for (Node node : readers) {
    if (is_composite(node) || function_of(node))
      return unsupported(cat(described(node), " is composite"));
    bool reads_examples = examples_->reads(node);
    for (Value output : node.outputs()) {
      if (!output || !carries_gradient(node, output)) continue;
      if (reads_examples && !examples_->leads(output.type()))
        return unsupported(cat(described(node), " joins examples where it reads it"));
      if (!reads_examples) TN_CHECK(plan(output));
    }
    for (uint64_t i = 0; i < node.n_inputs() && reads_examples; ++i)
      if (node.input(i) == value && examples_->is_each(node, i))
        return unsupported(cat(described(node), " takes an entry of it for each example"));
  }
  readers_[value.id] = std::move(readers);
  return {};
}

std::vector<Value> ExampleGradients::results() const {
  std::vector<Value> out;
  for (const auto& [id, readers] : readers_)
    for (Node node : readers)
      for (Value output : node.outputs())
        if (output && carries_gradient(node, output) && examples_->reads(node) &&
            std::ranges::find(out, output) == out.end())
          out.push_back(output);
  return out;
}

Result<Value> ExampleGradients::of(Value value, const Cotangents& cotangents) {
  Builder b(edit_);
  Value sum;
  for (Node node : readers_.at(value.id)) {
    TN_TRY(part, through(node, value, cotangents));
    if (part) sum = sum ? b.add(sum, part) : part;
  }
  TN_CHECK(b.status());
  return sum;
}

Result<Value> ExampleGradients::through(Node node, Value value, const Cotangents& cotangents) {
  Builder b(edit_);
  bool reads_examples = examples_->reads(node), any = false;
  BatchContext context{edit_, examples_->size(), RandomMode::kSame, {}, {}, {}};
  std::vector<Value> given, inputs = node.inputs();
  for (Value output : node.outputs()) {
    Value wide;
    if (output && carries_gradient(node, output) && !reads_examples) {
      TN_TRY(gradient, of(output, cotangents));
      wide = gradient;
    } else if (auto found = cotangents.find(output.id); output && found != cotangents.end()) {
      wide = found->second ? b.op("Unsqueeze", {found->second, b.ints({1})}) : Value{};
    }
    given.emplace_back();
    if (!wide) continue;
    TN_TRY(one, stand_in(edit_, output.type(), reads_examples));
    context.batched[one.id] = wide;
    given.back() = one;
    any = true;
  }
  if (!any) return Value{};
  std::vector<uint8_t> wanted;
  for (Value& input : inputs) {
    wanted.push_back(input == value);
    if (!input || !examples_->has_examples(input)) continue;
    TN_TRY(one, stand_in(edit_, input.type(), true));
    context.batched[one.id] = b.op("Unsqueeze", {input, b.ints({1})});
    input = one;
  }
  Node alone = reads_examples ? again(b, node, inputs) : node;
  TN_CHECK(b.status());
  std::vector<tn_value_id> gradients;
  TN_CHECK(differentiate(edit_, alone, given, wanted, gradients));
  Value sum;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!wanted[i] || gradients[i] == 0) continue;
    Value part = sum_to(b, edit_.value(gradients[i]), value);
    sum = sum ? b.add(sum, part) : part;
  }
  TN_CHECK(b.status());
  if (!sum) return Value{};
  // As an output for a while: what is taken apart on the way is replaced there.
  uint64_t place = edit_.graph().outputs().size();
  TN_CHECK(edit_.output(kStandIn, sum));
  TN_CHECK(batch_nodes(context, {sum}, cancel_));
  loops_.insert(loops_.end(), context.loops.begin(), context.loops.end());
  Value wide = with_axis(b, context, edit_.graph().outputs()[place]);
  TN_CHECK(b.status());
  TN_CHECK(services.edit->remove_output(edit_.raw, place));
  return wide;
}

Result<Value> ExampleGradients::weighted(Value value, Value weights, const Cotangents& cotangents) {
  Builder b(edit_);
  Value sum;
  for (Node node : readers_.at(value.id)) {
    bool reads_examples = examples_->reads(node), any = false;
    std::vector<Value> given;
    for (Value output : node.outputs()) {
      given.emplace_back();
      if (!output || !carries_gradient(node, output)) continue;
      if (!reads_examples) {
        TN_TRY(gradient, weighted(output, weights, cotangents));
        given.back() = gradient;
      } else if (auto found = cotangents.find(output.id);
                 found != cotangents.end() && found->second) {
        std::vector<int64_t> dims(output.type().rank(), 1);
        dims[0] = -1;
        given.back() = b.mul(found->second, b.cast(b.reshape(weights, dims), output.dtype()));
      }
      any = any || given.back();
    }
    TN_CHECK(b.status());
    if (!any) continue;
    std::vector<uint8_t> wanted;
    for (Value input : node.inputs())
      wanted.push_back(input == value);
    std::vector<tn_value_id> gradients;
    TN_CHECK(differentiate(edit_, node, given, wanted, gradients));
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!wanted[i] || gradients[i] == 0) continue;
      Value part = sum_to(b, edit_.value(gradients[i]), value);
      sum = sum ? b.add(sum, part) : part;
    }
  }
  TN_CHECK(b.status());
  return sum;
}

}  // namespace tenon::autodiff
