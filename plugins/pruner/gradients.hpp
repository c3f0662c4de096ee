// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of a loss by constants of a model, batch by batch of a data set. The graph that gives
// them is made by the pass "autodiff.grad", whoever brings it.

#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/sdk/feed.hpp"

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
  uint64_t batches() const { return feed_.batches(); }
  Status load(uint64_t batch, const Cancel& cancel);
  // Of the batch that was loaded last; lives until the next.
  const float* of(Value constant) const;

 private:
  Plan plan_;
  Feed feed_;
  std::unordered_map<tn_value_id, size_t> index_;
};

}  // namespace tenon::pruner
