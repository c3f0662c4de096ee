// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of a loss by constants of a model, batch by batch of a data set. The graph that gives
// them is made by the pass "autodiff.grad", whoever brings it.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/role/dataset.h"

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/graph.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon::pruner {

struct GradientPlan {
  Component data;
  uint64_t samples = 0, batch = 1;
  std::string label;  // field of the data set
  std::string loss;   // "cross_entropy" or "mse"
};

class Gradients {
 public:
  // constants: float32. graph and plan: outlive this.
  static Result<Gradients> make(tn_ctx* ctx,
                                const tn_graph* graph,
                                const std::vector<Value>& constants,
                                const GradientPlan& plan,
                                const Cancel& cancel);
  uint64_t batches() const { return (samples_ + batch_ - 1) / batch_; }
  Status load(uint64_t batch, const Cancel& cancel);
  // Of the batch that was loaded last; lives until the next.
  const float* of(Value constant) const;

 private:
  struct Release {
    void operator()(tn_plan* plan) const { services.eval->release(plan); }
  };
  struct Input {
    std::string name;
    Type type;
    size_t field = 0;
  };
  Status match_fields(Graph graph);
  Result<Tensor> as_input(const Input& input, const Tensor& given) const;

  tn_ctx* ctx_ = nullptr;
  const GradientPlan* given_ = nullptr;
  std::unique_ptr<tn_plan, Release> plan_;
  std::vector<Input> inputs_;
  size_t n_fields_ = 0;
  uint64_t samples_ = 0, batch_ = 1;
  std::unordered_map<tn_value_id, size_t> index_;
  std::vector<Tensor> results_;
};

}  // namespace tenon::pruner
