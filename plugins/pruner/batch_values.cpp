// SPDX-License-Identifier: Apache-2.0
#include "batch_values.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "tenon/role/pass.h"

#include "removal.hpp"

namespace tenon::pruner {
namespace {

// What goes into a last Softmax, else the value itself: probabilities sum to 1 whatever flows.
Value before_softmax(Value out) {
  Node last = out.producer();
  return last && (last.is("Softmax") || last.is("LogSoftmax")) ? last.input(0) : out;
}

// All float constants by size, and the sum of the first output as the loss.
Status make_flow(tn_ctx* ctx, tn_graph* graph) {
  TN_TRY(edit, Edit::begin(graph));
  for (Value constant : edit.graph().constants()) {
    if (constant.dtype() != TN_F32) continue;
    Tensor numbers = constant.constant();
    const float* data = numbers.data<float>();
    std::vector<float> sizes(data, data + element_count(numbers.dl()));
    for (float& one : sizes)
      one = std::abs(one);
    TN_TRY(made, Tensor::of<float>(ctx, TN_F32, constant.type().dims, sizes));
    TN_CHECK(replace_constant(edit, constant, made));
  }
  Value out = before_softmax(edit.graph().outputs().at(0));
  TN_TRY(sum, edit.op("ReduceSum", {out}, {{"keepdims", 0}}));
  TN_CHECK(edit.output(kLoss, sum));
  return edit.commit();
}

}  // namespace

Status differentiate(tn_ctx* ctx,
                     tn_graph* graph,
                     const std::vector<Value>& constants,
                     const Cancel& cancel) {
  nlohmann::json wrt = nlohmann::json::array();
  for (Value v : constants)
    wrt.push_back(v.name());
  nlohmann::json options{{"wrt", wrt}, {"output", kLoss}};
  return run_pass(ctx, graph, "autodiff.grad", options.dump(), cancel.raw());
}

Result<BatchValues> BatchValues::flow(tn_ctx* ctx,
                                      const tn_graph* graph,
                                      const std::vector<Value>& constants,
                                      const Cancel& cancel) {
  BatchValues out;
  for (Value input : Graph{graph}.inputs()) {
    Type type = input.type();
    if (type.dtype != TN_F32 || !type.ranked)
      return unsupported(
          cat("the flow through a model: expected inputs of float32 and known rank, ", "got ",
              input.name()));
    for (int64_t& dim : type.dims)
      dim = std::max<int64_t>(dim, 1);
    std::vector<float> ones(static_cast<size_t>(element_count(type.dims)), 1.0F);
    TN_TRY(made, Tensor::of<float>(ctx, TN_F32, type.dims, ones));
    out.ones_.push_back(std::move(made));
  }
  TN_TRY(clone, OwnedGraph::copy_of(graph));
  TN_CHECK(make_flow(ctx, clone.get()));
  TN_CHECK(differentiate(ctx, clone.get(), constants, cancel).in("gradients"));
  TN_CHECK(out.compile(ctx, clone.get(), constants));
  return Result<BatchValues>(std::move(out));
}

Status BatchValues::compile(tn_ctx* ctx, tn_graph* graph, const std::vector<Value>& constants) {
  for (size_t i = 0; i < constants.size(); ++i)
    index_[constants[i].id] = i;
  Result<Plan> compiled = Plan::on_first(ctx, Graph{graph}, {}, {});
  if (!compiled.ok()) return std::move(compiled).status().in("gradients");
  plan_ = std::move(*compiled);
  return {};
}

Result<BatchValues> BatchValues::gradients(tn_ctx* ctx,
                                           const tn_graph* graph,
                                           const std::vector<Value>& constants,
                                           const BatchPlan& plan,
                                           const Cancel& cancel) {
  BatchValues out;
  TN_TRY(lossy, with_loss(ctx, graph, plan, &out.feed_));
  OwnedGraph clone = std::move(lossy);
  out.rules_ = BatchRules::of(clone.view());
  TN_CHECK(differentiate(ctx, clone.get(), constants, cancel).in("gradients"));
  TN_CHECK(out.compile(ctx, clone.get(), constants));
  return Result<BatchValues>(std::move(out));
}

Result<BatchValues> BatchValues::activations(tn_ctx* ctx,
                                             const tn_graph* graph,
                                             const std::vector<Value>& values,
                                             const BatchPlan& plan) {
  BatchValues out;
  TN_TRY(feed, feed_of(ctx, plan, Graph{graph}, {}, ", for an importance that uses activations"));
  out.feed_ = std::move(feed);
  out.rules_ = BatchRules::of(Graph{graph});
  for (size_t i = 0; i < values.size(); ++i)
    out.index_[values[i].id] = i;
  Result<Plan> compiled = Plan::on_first(ctx, Graph{graph}, values, {});
  if (!compiled.ok()) return std::move(compiled).status().in("activations");
  out.plan_ = std::move(*compiled);
  out.first_ = out.plan_.n_outputs();
  return Result<BatchValues>(std::move(out));
}

Status BatchValues::load(uint64_t batch, const Cancel& cancel) {
  if (!ones_.empty()) {
    std::vector<DLTensor> inputs;
    for (const Tensor& one : ones_)
      inputs.push_back(one.dl());
    TN_CHECK(plan_.run(inputs, cancel.raw()).in("the flow"));
    is_loaded_ = true;
    return {};
  }
  TN_TRY(loaded, feed_.load(batch));
  TN_CHECK(rules_.check(loaded.inputs).in(feed_.batch_text(batch)));
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
