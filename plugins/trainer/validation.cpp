// SPDX-License-Identifier: Apache-2.0
#include "validation.hpp"

#include <algorithm>
#include <memory>

#include "tenon/role/metric.h"

#include "tenon/sdk/collected.hpp"

namespace tenon::trainer {
namespace {

struct Release {
  void operator()(tn_plan* plan) const { services.eval->release(plan); }
};

Status update_metric(const Component& metric,
                     const Collected& results,
                     size_t n_predictions,
                     const Tensor& target) {
  std::vector<DLTensor> views;
  for (size_t i = 0; i < n_predictions; ++i)
    views.push_back(results[i].dl());
  std::vector<const DLTensor*> out;
  for (const DLTensor& view : views)
    out.push_back(&view);
  DLTensor label = target.dl();
  const DLTensor* labels[] = {&label};
  return Status(
      metric.table<tn_metric>()->update(metric.self(), out.data(), out.size(), labels, 1));
}

}  // namespace

Result<Score> validate(const Recipe& recipe,
                       const tn_graph* model,
                       const ValidationPlan& plan,
                       const Cancel& cancel) {
  TN_TRY(graph, make_evaluation(recipe, model, plan.feed->targets()));
  size_t n_predictions = Graph{model}.outputs().size(), n_inputs = recipe.inputs.size();
  tn_plan* raw = nullptr;
  TN_CHECK(services.eval->compile(recipe.ctx, graph.get(), nullptr, 0, str(plan.options), &raw));
  std::unique_ptr<tn_plan, Release> compiled(raw);
  Component metric;
  if (!plan.metric.id.empty()) {
    TN_TRY(made,
           Component::create(recipe.ctx, "tenon.metric/1", plan.metric.id, plan.metric.options));
    metric = std::move(made);
  }
  Score score;
  for (uint64_t begin = 0; begin < plan.samples.size(); begin += plan.batch) {
    TN_CHECK(cancel.check());
    uint64_t n = std::min<uint64_t>(plan.batch, plan.samples.size() - begin);
    TN_TRY(batch, plan.feed->load({plan.samples.data() + begin, n}, 0));
    std::vector<DLTensor> views;
    for (const Tensor& tensor : batch)
      views.push_back(tensor.dl());
    std::vector<const DLTensor*> in;
    for (const DLTensor& view : views)
      in.push_back(&view);
    Collected results(recipe.ctx, n_predictions + 1);
    TN_CHECK(services.eval->run(compiled.get(), in.data(), in.size(), results.outputs(), nullptr));
    score.loss += *results[n_predictions].data<float>() * static_cast<double>(n);
    if (metric) TN_CHECK(update_metric(metric, results, n_predictions, batch[n_inputs]));
  }
  score.loss /= static_cast<double>(plan.samples.size());
  if (!metric) return score;
  double value = 0;
  int32_t higher = 0;
  TN_CHECK(metric.table<tn_metric>()->value(metric.self(), &value, &higher));
  score.metric = value;
  score.higher_is_better = higher != 0;
  return score;
}

}  // namespace tenon::trainer
