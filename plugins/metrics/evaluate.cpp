// SPDX-License-Identifier: Apache-2.0
// "metrics.evaluate": a metric over a data set, held against labels of the data set or against the
// outputs of a reference model. The graph stays as it is; the report is the answer.
#include "tenon/sdk/evaluation.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "finite.hpp"
#include "options.hpp"

namespace tenon::metrics {
namespace {

using nlohmann::json;

class Evaluate {
 public:
  static Result<Evaluate> create(tn_ctx* ctx, const Options& options) {
    Evaluate out;
    out.ctx_ = ctx;
    TN_TRY(data, component_option(ctx, options, "data", "tenon.dataset/1"));
    out.data_ = std::move(data);
    std::string id = options.text("metric");
    if (id.find('.') == std::string::npos) id = "metrics." + id;
    TN_TRY(metric, Metric::create(ctx, id, options.text("metric_options", "{}")));
    out.metric_ = std::move(metric);
    out.plan_ = options.text("plan", "{}");
    out.against_plan_ = options.text("against_plan", "{}");
    out.feed_.samples = static_cast<uint64_t>(options.integer("limit"));
    out.feed_.labels = {out.metric_.label()};
    if (options.has("batch")) out.feed_.batch = static_cast<uint64_t>(options.integer("batch"));
    tn_any against = options.get("against");
    if (against.tag == TN_ANY_GRAPH) {
      auto* graph = static_cast<tn_graph*>(const_cast<void*>(against.v.p));
      services.graph->retain(graph);
      out.against_ = OwnedGraph::take(graph);
    } else if (out.metric_.is_against_outputs()) {
      return invalid(cat("metric ", out.metric_.id(), ": expected a reference model, got none"));
    }
    return Result<Evaluate>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    TN_TRY(feed, Feed::make(ctx_, data_, {raw}, feed_));
    TN_TRY(plan, Plan::compile(ctx_, {raw}, {}, plan_));
    Plan reference;
    if (metric_.is_against_outputs()) {
      TN_TRY(made, Plan::compile(ctx_, against_.view(), {}, against_plan_));
      reference = std::move(made);
    } else if (!feed.want(metric_.label()).ok()) {
      return invalid(cat("option label of ", metric_.id(), ": expected one of ",
                         feed.fields().names(), ", got '", metric_.label(), "'"));
    }
    Progress progress(ctx_, "evaluate", feed.samples());
    auto measure = [&](const Feed::Batch& batch) -> Status {
      Results results(plan, plan.n_outputs(), feed.batch(), batch.samples);
      if (!reference) return metric_.update(results.all(), batch.extras);
      TN_CHECK(reference.run(batch.inputs, cancel.raw()).in("the reference model"));
      Results right(reference, reference.n_outputs(), feed.batch(), batch.samples);
      return metric_.update(results.all(), right.all());
    };
    TN_CHECK(run_batches(plan, feed, cancel, &progress, measure));
    TN_TRY(value, metric_.value());
    json described = json::parse(plan.describe());
    return sink.write(json{{"metric", metric_.id()},
                           {"value", finite(value.first)},
                           {"higher_is_better", value.second},
                           {"details", metric_.details()},
                           {"samples", feed.samples()},
                           {"backend", plan.backend()},
                           {"notes", feed.notes()},
                           {"fallback_nodes", described.value("fallback_nodes", json::array())}}
                          .dump());
  }

 private:
  tn_ctx* ctx_ = nullptr;
  Component data_;
  Metric metric_;
  OwnedGraph against_;
  FeedPlan feed_;
  std::string plan_, against_plan_;
};

}  // namespace
}  // namespace tenon::metrics

TENON_PASS(evaluate,
           tenon::metrics::Evaluate,
           "metrics.evaluate",
           "a metric of the model over a data set, as report; the graph stays as it is",
           R"({"properties": {)" TENON_METRICS_OPTIONS R"(,
    "metric": {"type": "string", "default": "accuracy", "description": "an id, or the last word of one of metrics"},
    "metric_options": {"type": "object", "description": "options of the metric"},
    "against": {"type": "graph", "description": "the reference model of metrics that compare outputs"},
    "against_plan": {"type": "object", "description": "how the reference model runs"},
    "limit": {"type": "integer", "minimum": 0, "default": 0, "description": "only this many samples, the first; 0: all"}},
  "required": ["data"]})")
