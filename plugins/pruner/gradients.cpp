// SPDX-License-Identifier: Apache-2.0
#include "gradients.hpp"

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

}  // namespace

Result<Gradients> Gradients::make(tn_ctx* ctx,
                                  const tn_graph* graph,
                                  const std::vector<Value>& constants,
                                  const GradientPlan& plan,
                                  const Cancel& cancel) {
  Gradients out;
  if (!plan.data)
    return invalid(
        "option data: expected a data set with labels, for an importance that uses "
        "gradients");
  TN_TRY(fields, Fields::of(ctx, plan.data));
  if (!fields.find(plan.label))
    return invalid(
        cat("option label: expected a field ", plan.label, ", the data set has ", fields.names()));
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->clone(graph, &raw));
  OwnedGraph clone = OwnedGraph::take(raw);
  TN_CHECK(add_loss(raw, plan.loss));
  FeedPlan how{.user = "importance",
               .usual = plan.batch,
               .samples = plan.samples,
               .rest = Rest::kLeftOut,
               .fields = {{std::string(kTarget), plan.label}},
               .labels = {plan.label}};
  TN_TRY(feed, Feed::make(ctx, plan.data, clone.view(), how));  // before the costly part
  out.feed_ = std::move(feed);
  Status made = differentiate(ctx, raw, constants, cancel);
  if (!made.ok()) return std::move(made).in("gradients");
  for (size_t i = 0; i < constants.size(); ++i)
    out.index_[constants[i].id] = i;
  Result<Plan> compiled = Plan::on_first(ctx, clone.view(), {}, {});
  if (!compiled.ok()) return std::move(compiled).status().in("gradients");
  out.plan_ = std::move(*compiled);
  return out;
}

Status Gradients::load(uint64_t batch, const Cancel& cancel) {
  TN_TRY(loaded, feed_.load(batch));
  Status ran = plan_.run(loaded.inputs, cancel.raw());
  if (!ran.ok()) return std::move(ran).in(cat("gradients of ", feed_.batch_text(batch)));
  return {};
}

const float* Gradients::of(Value constant) const {
  auto at = index_.find(constant.id);
  return at == index_.end() || !plan_[at->second] ? nullptr : plan_[at->second].data<float>();
}

}  // namespace tenon::pruner
