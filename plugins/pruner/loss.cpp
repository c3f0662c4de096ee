// SPDX-License-Identifier: Apache-2.0
#include "loss.hpp"

#include <algorithm>
#include <cmath>

#include "tenon/sdk/edit.hpp"

namespace tenon::pruner {
namespace {

constexpr std::string_view kTarget = "pruner/target";

// The output with its classes on axis 1, as the operator wants them.
Result<Value> classes_first(EditView edit, Value out, const BatchPlan& plan) {
  auto rank = static_cast<int64_t>(out.type().rank());
  int64_t axis = positive_axis(plan.axis, out.type().rank());
  if (axis < 1 || axis >= rank)
    return invalid(cat("option axis: cross_entropy wants classes on an axis from 1 of the first ",
                       "output, got axis ", plan.axis, " of rank ", rank));
  if (axis == 1) return out;
  std::vector<int64_t> perm{0, axis};
  for (int64_t i = 1; i < rank; ++i)
    if (i != axis) perm.push_back(i);
  return edit.op("Transpose", {out}, {{"perm", perm}});
}

// Appends the loss of output 0 against a new last input.
Status add_loss(tn_graph* graph, const BatchPlan& plan) {
  TN_TRY(edit, Edit::begin(graph));
  Value out = edit.graph().outputs().at(0);
  Type type = out.type();
  if (!type.ranked || !is_float(type.dtype))
    return invalid("expected a model whose first output is a float tensor of known rank");
  Value value;
  if (plan.loss == "cross_entropy") {
    TN_TRY(scores, classes_first(edit, out, plan));
    Type labels = scores.type();
    labels.dtype = TN_I64;
    labels.dims.erase(labels.dims.begin() + 1);
    if (!labels.symbols.empty()) labels.symbols.erase(labels.symbols.begin() + 1);
    TN_TRY(target, edit.input(kTarget, labels));
    TN_TRY(made, edit.op("SoftmaxCrossEntropyLoss", {scores, target}));
    value = made;
  } else {
    TN_TRY(target, edit.input(kTarget, type));
    TN_TRY(difference, edit.op("Sub", {out, target}));
    TN_TRY(square, edit.op("Mul", {difference, difference}));
    TN_TRY(mean, edit.op("ReduceMean", {square}, {{"keepdims", 0}}));
    value = mean;
  }
  TN_CHECK(edit.output(kLoss, value));
  return edit.commit();
}

}  // namespace

Result<BatchPlan> batch_plan(tn_ctx* ctx, const Options& options) {
  TN_TRY(data, FeedOptions::read(ctx, options));
  BatchPlan out;
  out.data = std::move(data);
  out.label = options.text("label");
  out.loss = options.text("loss");
  out.axis = options.integer("axis");
  return Result<BatchPlan>(std::move(out));
}

Result<Feed> feed_of(tn_ctx* ctx,
                     const BatchPlan& plan,
                     Graph model,
                     std::map<std::string, std::string> fields,
                     std::string_view what) {
  if (!plan.data.data) return invalid(cat("option data: expected a data set", what, ", got none"));
  FeedPlan how = plan.data.plan("importance");
  how.fields = std::move(fields);
  if (!plan.label.empty()) how.labels = {plan.label};
  return Feed::make(ctx, plan.data.data, model, how);
}

BatchRules BatchRules::of(Graph graph) {
  BatchRules out;
  for (Value input : graph.inputs())
    out.names.emplace_back(input.name());
  for (Node node : graph.nodes())  // of classes, the loss reads the scores and then the labels
    if (node.n_inputs() == 2 && node.input(1).name() == kTarget && node.input(1).dtype() == TN_I64)
      out.classes = node.input(0).type().dims.at(1);
  return out;
}

Status BatchRules::check(std::span<const DLTensor> inputs) const {
  for (size_t i = 0; i < inputs.size() && i < names.size(); ++i) {
    const int64_t n = element_count(inputs[i]);
    if (dtype_of(inputs[i]) == TN_F32) {
      const auto* data = data_of<const float>(inputs[i]);
      const auto bad = std::count_if(data, data + n, [](float x) { return !std::isfinite(x); });
      if (bad > 0)
        return invalid(cat("input ", names[i], ": ", bad, " of ", n, " numbers are not finite"));
    }
    if (names[i] != kTarget || classes < 0 || dtype_of(inputs[i]) != TN_I64) continue;
    const auto* labels = data_of<const int64_t>(inputs[i]);
    const auto* wrong =
        std::find_if(labels, labels + n, [&](int64_t x) { return x < 0 || x >= classes; });
    if (wrong != labels + n) return invalid(cat("label ", *wrong, ": expected 0 to ", classes - 1));
  }
  return {};
}

Result<OwnedGraph> with_loss(tn_ctx* ctx,
                             const tn_graph* graph,
                             const BatchPlan& plan,
                             Feed* feed) {
  constexpr std::string_view kWhat = " with labels, for an importance that uses the loss";
  if (!plan.data.data) return invalid(cat("option data: expected a data set", kWhat, ", got none"));
  TN_TRY(fields, Fields::of(ctx, plan.data.data));
  if (!fields.find(plan.label))
    return invalid(
        cat("option label: expected a field ", plan.label, ", the data set has ", fields.names()));
  TN_TRY(clone, OwnedGraph::copy_of(graph));
  TN_CHECK(add_loss(clone.get(), plan));
  TN_TRY(made, feed_of(ctx, plan, clone.view(), {{std::string(kTarget), plan.label}}, kWhat));
  *feed = std::move(made);
  return std::move(clone);
}

}  // namespace tenon::pruner
