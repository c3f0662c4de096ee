// SPDX-License-Identifier: Apache-2.0
#include "objective.hpp"

#include <algorithm>
#include <set>

namespace tenon::trainer {
namespace {

// Nodes between `value` and the ends, which are not among them.
void collect(Value value, std::set<tn_value_id>& seen, std::vector<Node>& nodes) {
  std::vector<Value> open{value};
  while (!open.empty()) {
    Value at = open.back();
    open.pop_back();
    if (!at || !seen.insert(at.id).second) continue;
    Node node = at.producer();
    if (!node) continue;
    nodes.push_back(node);
    for (Value input : node.inputs())
      open.push_back(input);
  }
}

}  // namespace

bool fits(const Type& a, const Type& b) {
  if (a.rank() != b.rank()) return false;
  for (size_t i = 0; i < a.rank(); ++i)
    if (a.dims[i] >= 0 && b.dims[i] >= 0 && a.dims[i] != b.dims[i]) return false;
  return true;
}

Result<Compared> compared(const Objective& objective) {
  if (objective.predictions.empty())
    return invalid("prediction: expected a model with an output, got none");
  if (objective.targets.empty())
    return invalid(
        "target: expected one field of the data set, as labels are, got none beside the model's "
        "inputs");
  if (objective.targets.size() != 1)
    return invalid(cat(
        "target: expected one field of the data set, got ", objective.targets.size(),
        "; a loss of several, or of several outputs, is a function of your own: tn.Step (tn.step "
        "in Lua)"));
  Compared out{objective.predictions[0], objective.targets[0], objective.predictions[0].type(),
               objective.targets[0].type()};
  if (!out.predicted.ranked || !is_float(out.predicted.dtype))
    return invalid(cat("prediction ", out.prediction.name(),
                       ": expected floats of known rank, got ", type_text(out.predicted)));
  if (!out.wanted.ranked)
    return invalid(cat("target ", out.target.name(), ": expected a known rank"));
  return out;
}

Result<Paired> paired(Builder& b, const Objective& objective) {
  TN_TRY(of, compared(objective));
  Value target = b.cast(of.target, TN_F32);
  Type wanted = of.wanted;
  // One number a sample, which a table gives as [n] and a model as [n, 1].
  if (wanted.rank() + 1 == of.predicted.rank() && of.predicted.dims.back() == 1) {
    target = b.op("Unsqueeze", {target, b.ints({-1})});
    wanted.dims.push_back(1);
  }
  if (!fits(of.predicted, wanted))
    return invalid(cat("target ", of.target.name(), ": expected the shape of prediction ",
                       of.prediction.name(), ", ", type_text(of.predicted), ", got ",
                       type_text(of.wanted)));
  return Paired{b.cast(of.prediction, TN_F32), target, {of.prediction, of.target}};
}

Value logits_of(Value prediction, int64_t axis) {
  Node last = prediction.producer();
  if (!last || !(last.is("Softmax") || last.is("LogSoftmax"))) return prediction;
  int64_t over = last.attr_int("axis", -1);
  auto rank = static_cast<int64_t>(prediction.type().rank());
  return (over < 0 ? over + rank : over) == axis ? last.input(0) : prediction;
}

Result<int64_t> class_axis(const Compared& of, int64_t axis) {
  auto rank = static_cast<int64_t>(of.predicted.rank());
  if (rank < 2 || axis < -rank || axis >= rank)
    return invalid(cat("prediction ", of.prediction.name(), ": expected classes on axis ", axis,
                       ", got ", type_text(of.predicted)));
  int64_t from_front = axis < 0 ? axis + rank : axis;
  if (of.predicted.dims[static_cast<size_t>(from_front)] < 1)
    return invalid(cat("prediction ", of.prediction.name(),
                       ": expected a known number of classes on axis ", axis, ", got ",
                       type_text(of.predicted)));
  return from_front;
}

Result<Value> divided_by_share(Builder& b, Value parts, Value share) {
  Value some = b.op("Greater", {share, b.number(0, TN_F32)});
  Value divisor = b.op("Where", {some, share, b.number(1, TN_F32)});
  TN_CHECK(b.status());
  TN_CHECK(b.edit().set_note(0, kShareNote, any_text(share.name())));
  TN_CHECK(b.edit().set_note(0, kDivisorNote, any_text(divisor.name())));
  return b.div(parts, divisor);
}

std::string noted(const tn_graph* graph, std::string_view note) {
  tn_any name{};
  Status found(services.graph->note(graph, 0, str(note), &name));
  return found.ok() && name.tag == TN_ANY_TEXT ? std::string(text_of(name)) : std::string();
}

Status show_shares(EditView edit) {
  for (std::string_view note : {kShareNote, kDivisorNote}) {
    const std::string name = noted(edit.graph().raw, note);
    if (name.empty()) continue;
    Value value = edit.graph().find(name);
    if (!value) return {TN_INTERNAL, cat("no value ", name, " in the step")};
    Builder b(edit);
    Value shown = b.cast(value, TN_F32);
    TN_CHECK(b.status());
    TN_CHECK(edit.output(note, shown));
  }
  return {};
}

Result<Value> mean_loss(Builder& b,
                        Value parts,
                        const std::vector<Value>& ends,
                        std::string_view cast) {
  Value loss = b.op("ReduceMean", {parts}, {{"keepdims", 0}});
  TN_CHECK(b.status());
  std::set<tn_value_id> seen;
  for (Value end : ends)
    seen.insert(end.id);
  std::vector<Node> nodes;
  collect(loss, seen, nodes);
  for (Node node : nodes)
    TN_CHECK(b.edit().set_note(node.id, "cast", any_text(cast)));
  return loss;
}

}  // namespace tenon::trainer
