// SPDX-License-Identifier: Apache-2.0
#pragma once
// What scores read beside weights, batch by batch of a data set: gradients of a loss by constants
// of a model, from the graph that the pass "autodiff.grad" makes, whoever brings it; or
// activations.

#include <string>
#include <unordered_map>
#include <vector>

#include "loss.hpp"

namespace tenon::pruner {

class BatchValues {
 public:
  // constants: float32. graph and plan: outlive this.
  static Result<BatchValues> gradients(tn_ctx* ctx,
                                       const tn_graph* graph,
                                       const std::vector<Value>& constants,
                                       const BatchPlan& plan,
                                       const Cancel& cancel);
  // Hessian times a direction, of the same loss: g - H w / 2 with the weights themselves as the
  // direction, or H m with the mean gradient over all batches.
  enum class Direction { kWeights, kMeanGradient };
  static Result<BatchValues> curvature(tn_ctx* ctx,
                                       const tn_graph* graph,
                                       const std::vector<Value>& constants,
                                       Direction direction,
                                       const BatchPlan& plan,
                                       const Cancel& cancel);
  // The same of the flow through absolute weights, for inputs of ones; one batch, no data.
  static Result<BatchValues> flow(tn_ctx* ctx,
                                  const tn_graph* graph,
                                  const std::vector<Value>& constants,
                                  const Cancel& cancel);
  // values: float32, none of them a constant. No labels are needed.
  static Result<BatchValues> activations(tn_ctx* ctx,
                                         const tn_graph* graph,
                                         const std::vector<Value>& values,
                                         const BatchPlan& plan);
  uint64_t batches() const { return ones_.empty() ? feed_.batches() : 1; }
  Status load(uint64_t batch, const Cancel& cancel);
  // The mean over all batches of each of these.
  Result<std::vector<Tensor>> means(tn_ctx* ctx,
                                    const std::vector<Value>& constants,
                                    const Cancel& cancel);
  // Of the batch that was loaded last; falsy: not among the values. Lives until the next batch.
  const Tensor* of(Value value) const;

 private:
  Status compile(tn_ctx* ctx, tn_graph* graph, const std::vector<Value>& constants);

  Plan plan_;
  Feed feed_;
  BatchRules rules_;
  std::vector<Tensor> ones_;  // the only batch, in the place of the feed
  size_t first_ = 0;          // of the values among the plan's results
  bool is_loaded_ = false;
  std::unordered_map<tn_value_id, size_t> index_;
};

// The graph's output kLoss becomes its gradients by these constants, in their order.
Status differentiate(tn_ctx* ctx,
                     tn_graph* graph,
                     const std::vector<Value>& constants,
                     const Cancel& cancel);

}  // namespace tenon::pruner
