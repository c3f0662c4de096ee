// SPDX-License-Identifier: Apache-2.0
#include "batch_values.hpp"

#include <nlohmann/json.hpp>

#include "tenon/role/pass.h"

namespace tenon::pruner {
namespace {

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

Result<BatchValues> BatchValues::gradients(tn_ctx* ctx,
                                           const tn_graph* graph,
                                           const std::vector<Value>& constants,
                                           const BatchPlan& plan,
                                           const Cancel& cancel) {
  BatchValues out;
  TN_TRY(lossy, with_loss(ctx, graph, plan, &out.feed_));
  OwnedGraph clone = std::move(lossy);
  Status made = differentiate(ctx, clone.get(), constants, cancel);
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
