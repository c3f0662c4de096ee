// SPDX-License-Identifier: Apache-2.0
#pragma once
// What scores read beside weights, batch by batch of a data set: gradients of a loss by constants
// of a model, from the graph that the pass "autodiff.grad" makes, whoever brings it; or
// activations.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/role/dataset.h"

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/graph.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon::pruner {

struct BatchPlan {
  Component data;
  uint64_t samples = 0, batch = 1;
  std::string label;  // field of the data set
  std::string loss;   // "cross_entropy" or "mse"
};

class BatchValues {
 public:
  // constants: float32. graph and plan: outlive this.
  static Result<BatchValues> gradients(tn_ctx* ctx,
                                       const tn_graph* graph,
                                       const std::vector<Value>& constants,
                                       const BatchPlan& plan,
                                       const Cancel& cancel);
  // values: float32, none of them a constant. No labels are needed.
  static Result<BatchValues> activations(tn_ctx* ctx,
                                         const tn_graph* graph,
                                         const std::vector<Value>& values,
                                         const BatchPlan& plan);
  uint64_t batches() const { return (samples_ + batch_ - 1) / batch_; }
  Status load(uint64_t batch, const Cancel& cancel);
  // Of the batch that was loaded last; falsy: not among the values. Lives until the next batch.
  const Tensor* of(Value value) const;

 private:
  struct Release {
    void operator()(tn_plan* plan) const { services.eval->release(plan); }
  };
  struct Input {
    std::string name;
    Type type;
    size_t field = 0;
  };
  static Result<BatchValues> of_data(tn_ctx* ctx, const BatchPlan& plan, std::string_view what);
  Status compile(const tn_graph* graph, const std::vector<tn_value_id>& taps);
  Status match_fields(Graph graph);
  Result<Tensor> as_input(const Input& input, const Tensor& given) const;

  tn_ctx* ctx_ = nullptr;
  const BatchPlan* given_ = nullptr;
  std::unique_ptr<tn_plan, Release> plan_;
  std::vector<Input> inputs_;
  size_t n_fields_ = 0;
  size_t n_results_ = 0, first_ = 0;  // of a run; those before the first are not wanted
  uint64_t samples_ = 0, batch_ = 1;
  std::unordered_map<tn_value_id, size_t> index_;
  std::vector<Tensor> results_;
};

}  // namespace tenon::pruner
