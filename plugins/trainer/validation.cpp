// SPDX-License-Identifier: Apache-2.0
#include "validation.hpp"

#include <algorithm>

#include "tenon/sdk/evaluation.hpp"

#include "objective.hpp"
#include "step_names.hpp"

namespace tenon::trainer {

Result<Score> validate(const Recipe& recipe,
                       const tn_graph* model,
                       const ValidationPlan& plan,
                       const Cancel& cancel) {
  TN_TRY(graph, make_evaluation(recipe, model, plan.feed->targets()));
  const size_t n_predictions = Graph{model}.outputs().size(), n_samples = plan.samples.size();
  TN_TRY(compiled, Plan::compile(recipe.ctx, graph.view(), {}, plan.options));
  Metric metric;
  if (!plan.metric.id.empty()) {
    TN_TRY(made, Metric::create(recipe.ctx, plan.metric.id, plan.metric.options));
    metric = std::move(made);
  }
  const std::optional<size_t> share = result_named(graph.view(), kShareNote);
  const std::optional<size_t> divisor = result_named(graph.view(), kDivisorNote);
  auto result = [&](size_t at) { return static_cast<double>(*compiled[at].data<float>()); };
  Score score;
  MeanLoss loss;
  auto load = [&](uint64_t b) {
    const uint64_t begin = b * plan.batch;
    return plan.feed->load(
        {plan.samples.data() + begin, std::min<uint64_t>(plan.batch, n_samples - begin)}, 0);
  };
  auto measure = [&](const tenon::Feed::Batch& batch) -> Status {
    loss.add(result(n_predictions), static_cast<double>(batch.samples), share ? result(*share) : 1,
             divisor ? result(*divisor) : 1);
    if (!metric) return {};
    Results results(compiled, n_predictions, batch.samples, batch.samples);
    return metric.update(results.all(), batch.extras.first(1));
  };
  const uint64_t n_batches = (n_samples + plan.batch - 1) / plan.batch;
  TN_CHECK(run_batches(compiled, n_batches, cancel, load, measure));
  score.loss = loss.value();
  if (!metric) return score;
  TN_TRY(value, metric.value());
  std::tie(score.metric, score.higher_is_better) = value;
  return score;
}

}  // namespace tenon::trainer
