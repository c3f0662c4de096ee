// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scores from anyone's importance component: of the channels of groups, or of single weights.

#include <functional>
#include <string>
#include <vector>

#include "tenon/role/importance.h"

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/run.hpp"

#include "batch_values.hpp"
#include "effects.hpp"
#include "groups.hpp"

namespace tenon::pruner {

struct Scores {  // one number for each channel of each group, or for each element of each weight
  std::vector<std::vector<double>> mean;   // over batches
  std::vector<std::vector<double>> error;  // its standard error; empty: weights alone were asked
};

class Scoring {
 public:
  // By the options below and "importance", the id of a component or the last word of one of ours.
  static Result<Scoring> create(tn_ctx* ctx, const Options& options);
  std::string id() const { return importance_.id(); }

  // One score per channel of each of these groups.
  Result<Scores> channels(const tn_graph* graph,
                          const Groups& groups,
                          const std::vector<size_t>& which,
                          const Cancel& cancel) const;
  // One score per element of each weight.
  Result<Scores> elements(const tn_graph* graph,
                          const std::vector<Weight>& weights,
                          const Cancel& cancel) const;

 private:
  struct Batch {  // what was asked for, of the batch at hand; else NULL
    const BatchValues* gradients = nullptr;
    const BatchValues* activations = nullptr;
    Effects* effects = nullptr;
    const Cancel* cancel = nullptr;
  };
  using ScoreOne = std::function<Result<std::vector<double>>(size_t, const Batch&)>;
  struct Asked {  // of what scores want to know more than its weights
    std::vector<Value> constants = {}, multiplied = {};
    std::vector<const Group*> groups = {};
    size_t n = 0;  // things to score
  };
  Result<Scores> average(const tn_graph* graph,
                         const Asked& asked,
                         const Cancel& cancel,
                         const ScoreOne& one) const;
  Result<std::vector<double>> score(const tn_channel_group& group) const;
  Result<std::vector<double>> score_group(const Group& group,
                                          uint64_t index,
                                          const Batch& batch,
                                          const std::vector<float>& effects) const;
  Result<std::vector<double>> score_elements(const Weight& weight,
                                             uint64_t index,
                                             const Batch& batch) const;

  tn_ctx* ctx_ = nullptr;
  Component importance_;
  uint32_t needs_ = 0;
  BatchPlan plan_;
};

// Part of the option schemas.
// clang-format off
#define PRUNER_SCORING_OPTIONS \
  R"("importance_options": {"type": "object", "description": "options of the importance"},)" PRUNER_LOSS_OPTIONS("") "," \
  R"("orders": {"type": "integer", "minimum": 1, "default": 1, "description": "for scores by effects: how often each batch takes the channels of a group out"},)" \
  R"("order_seed": {"type": "integer", "minimum": 0, "default": 0, "description": "of the orders in which channels are taken out"})"
// clang-format on

// Scores of one group divided by their mean, so that groups compare.
void divide_by_mean(std::vector<double>& scores);

}  // namespace tenon::pruner
