// SPDX-License-Identifier: Apache-2.0
#include "batch_values.hpp"

#include <nlohmann/json.hpp>

#include "tenon/role/pass.h"

#include "tenon/sdk/edit.hpp"

namespace tenon::pruner {
namespace {

constexpr std::string_view kLoss = "pruner/loss";
constexpr std::string_view kTarget = "pruner/target";

// Appends the loss of output 0 against a new last input.
Status add_loss(tn_graph* graph, const std::string& loss) {
  TN_TRY(edit, Edit::begin(graph));
  Value out = edit.graph().outputs().at(0);
  Type type = out.type();
  if (!type.ranked || !is_float(type.dtype))
    return invalid("expected a model whose first output is a float tensor of known rank");
  Value value;
  if (loss == "cross_entropy") {
    if (type.rank() < 2)
      return invalid(cat("option loss: cross_entropy wants classes on axis 1 of the first output, ",
                         "got rank ", type.rank()));
    Type labels = type;
    labels.dtype = TN_I64;
    labels.dims.erase(labels.dims.begin() + 1);
    if (!labels.symbols.empty()) labels.symbols.erase(labels.symbols.begin() + 1);
    TN_TRY(target, edit.input(kTarget, labels));
    TN_TRY(made, edit.op("SoftmaxCrossEntropyLoss", {out, target}));
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

Status differentiate(tn_ctx* ctx,
                     tn_graph* graph,
                     const std::vector<Value>& constants,
                     const Cancel& cancel) {
  nlohmann::json wrt = nlohmann::json::array();
  for (Value v : constants)
    wrt.push_back(v.name());
  nlohmann::json options{{"wrt", wrt}, {"output", kLoss}};
  TN_TRY(pass, Component::create(ctx, "tenon.pass/1", "autodiff.grad", options.dump()));
  StringSink report;
  return Status(pass.table<tn_pass>()->run(pass.self(), graph, cancel.raw(), report.get()));
}

// What a feed of a data set needs to know for scores.
Result<Feed> feed_of(tn_ctx* ctx,
                     const BatchPlan& plan,
                     Graph model,
                     std::map<std::string, std::string> fields,
                     std::string_view what) {
  if (!plan.data) return invalid(cat("option data: expected a data set", what));
  FeedPlan how{.user = "importance",
               .usual = plan.batch,
               .samples = plan.samples,
               .rest = Rest::kLeftOut,
               .fields = std::move(fields)};
  if (!plan.label.empty()) how.labels = {plan.label};
  return Feed::make(ctx, plan.data, model, how);
}

}  // namespace

Result<BatchValues> BatchValues::gradients(tn_ctx* ctx,
                                           const tn_graph* graph,
                                           const std::vector<Value>& constants,
                                           const BatchPlan& plan,
                                           const Cancel& cancel) {
  constexpr std::string_view kWhat = " with labels, for an importance that uses gradients";
  if (!plan.data) return invalid(cat("option data: expected a data set", kWhat));
  TN_TRY(fields, Fields::of(ctx, plan.data));
  if (!fields.find(plan.label))
    return invalid(
        cat("option label: expected a field ", plan.label, ", the data set has ", fields.names()));
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->clone(graph, &raw));
  OwnedGraph clone = OwnedGraph::take(raw);
  TN_CHECK(add_loss(raw, plan.loss));
  BatchValues out;
  // Before the costly part.
  TN_TRY(feed, feed_of(ctx, plan, clone.view(), {{std::string(kTarget), plan.label}}, kWhat));
  out.feed_ = std::move(feed);
  Status made = differentiate(ctx, raw, constants, cancel);
  if (!made.ok()) return std::move(made).in("gradients");
  for (size_t i = 0; i < constants.size(); ++i)
    out.index_[constants[i].id] = i;
  Result<Plan> compiled = Plan::on_first(ctx, clone.view(), {}, {});
  if (!compiled.ok()) return std::move(compiled).status().in("gradients");
  out.plan_ = std::move(*compiled);
  return Result<BatchValues>(std::move(out));
}

Result<BatchValues> BatchValues::activations(tn_ctx* ctx,
                                             const tn_graph* graph,
                                             const std::vector<Value>& values,
                                             const BatchPlan& plan) {
  BatchValues out;
  TN_TRY(feed, feed_of(ctx, plan, Graph{graph}, {}, ", for an importance that uses activations"));
  out.feed_ = std::move(feed);
  for (size_t i = 0; i < values.size(); ++i)
    out.index_[values[i].id] = i;
  Result<Plan> compiled = Plan::on_first(ctx, Graph{graph}, values, {});
  if (!compiled.ok()) return std::move(compiled).status().in("activations");
  out.plan_ = std::move(*compiled);
  out.first_ = out.plan_.n_outputs();
  return Result<BatchValues>(std::move(out));
}

Status BatchValues::load(uint64_t batch, const Cancel& cancel) {
  TN_TRY(loaded, feed_.load(batch));
  Status ran = plan_.run(loaded.inputs, cancel.raw());
  if (!ran.ok()) return std::move(ran).in(cat("values of ", feed_.batch_text(batch)));
  is_loaded_ = true;
  return {};
}

const Tensor* BatchValues::of(Value value) const {
  auto at = index_.find(value.id);
  if (at == index_.end() || !is_loaded_) return nullptr;
  const Tensor& found = plan_[first_ + at->second];
  return found ? &found : nullptr;
}

}  // namespace tenon::pruner
