// SPDX-License-Identifier: Apache-2.0
// What comes out of the loop: weights, the model with them, the report.
#include <algorithm>

#include "loop.hpp"

namespace tenon::trainer {

using nlohmann::json;

Result<Weights> Loop::weights() const {
  const bool from_best = position_.finished && !best_.empty();
  const std::vector<std::string> states = stepper_->state_names();
  Weights out;
  for (const std::string& name : states) {
    Value constant = Graph{model_}.find(name);
    if (!constant || !constant.is_constant()) continue;
    auto best = best_.find(name);
    auto of_epochs = average_.find(name);
    if (from_best && best != best_.end()) {
      out[name] = best->second;
    } else if (of_epochs != average_.end()) {
      out[name] = of_epochs->second;
    } else {
      const std::string average = average_of(name);
      const bool has_average = std::ranges::binary_search(states, average);
      TN_TRY(one, stepper_->states({has_average ? average : name}));
      out[name] = one.begin()->second;
    }
  }
  return out;
}

Result<Weights> Loop::weights_of(Graph model) const {
  TN_TRY(out, weights());
  if (average_.empty()) return out;
  for (auto& [name, tensor] : out) {
    TN_TRY(copy, Tensor::copy_of(ctx_, model.find(name).constant().dl()));
    tensor = std::move(copy);
  }
  return out;
}

Status Loop::put_trained(tn_graph* model, const Cancel& cancel) const {
  TN_TRY(now, weights());
  TN_CHECK(put_back(model, now));
  bool is_best = position_.finished && !best_.empty();  // which has its statistics
  if (average_.empty() || is_best || !given_.batch_statistics) return {};
  StatisticsData from{&given_.data, order_of(0), batch_, given_.backends};
  if (given_.swa.statistics > 0 && given_.swa.statistics < from.samples.size())
    from.samples.resize(given_.swa.statistics);
  return estimate_statistics(ctx_, model, from, cancel);
}

Result<OwnedGraph> Loop::trained(const tn_graph* model, const Cancel& cancel) const {
  TN_TRY(out, OwnedGraph::copy_of(model));
  TN_CHECK(put_trained(out.get(), cancel));
  return std::move(out);
}

json Loop::report() const {
  json described = json::parse(stepper_->describe(), nullptr, false);
  json found = json::object();
  if (planned_bytes_ > 0) found = {{"batch", batch_}, {"planned_bytes", planned_bytes_}};
  json out{
      {"epochs", position_.epoch},
      {"steps", position_.steps},
      {"parameters", recipe_.parameters.size()},
      {"history", history_},
      {"stopped_early", position_.stopped_early},
      {"stopped_by", position_.stopped_by.empty() ? json() : json(position_.stopped_by)},
      {"best_epoch", position_.best_epoch},
      {"seconds", seconds_since(began_)},
      {"compiled", {{"steps", stepper_->compiled()}, {"seconds", stepper_->compile_seconds()}}},
      {"seconds_waited", ahead_ ? ahead_->seconds_waited() : 0},
      {"fallback_nodes", described.value("fallback_nodes", json::array())}};
  out.update(found);
  return out;
}

}  // namespace tenon::trainer
