// SPDX-License-Identifier: Apache-2.0
#pragma once
// How good a model is on samples that it is not trained on.

#include <optional>

#include "feed.hpp"

namespace tenon::trainer {

struct MetricChoice {
  std::string id;       // empty: the loss alone
  std::string options;  // a JSON object
};

struct Score {
  double loss = 0;
  std::optional<double> metric;
  bool higher_is_better = false;  // of the metric, or of the loss where there is none
};

struct ValidationPlan {
  Feed* feed = nullptr;
  std::vector<uint64_t> samples;
  uint64_t batch = 1;
  MetricChoice metric;
  std::string options;  // of the plan, a JSON object
};

Result<Score> validate(const Recipe& recipe,
                       const tn_graph* model,
                       const ValidationPlan& plan,
                       const Cancel& cancel);

}  // namespace tenon::trainer
