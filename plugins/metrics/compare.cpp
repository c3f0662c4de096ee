// SPDX-License-Identifier: Apache-2.0
// "metrics.compare": two models layer by layer: the values that have the same name in both, on the
// same samples. The graph, the first of the two, stays as it is; the report is the answer:
// {"samples", "compared", "outputs": [{"name", "value", "snr_db"}], "snr_db", "layers": [{"value",
// "op", "node", "source_snr_db", "damage", "snr_db", "cosine", "max_error"}]}. What could not be
// compared has null for its figures, and "trouble", which says why. snr_db: of the worst
// output, in front of what hides differences (a last Softmax). source_snr_db: of what the node
// reads. damage: noise to signal of the value, less what its inputs already had.
#include <algorithm>
#include <cmath>

#include "tenon/sdk/evaluation.hpp"
#include "tenon/sdk/padding.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "comparison.hpp"
#include "options.hpp"

namespace tenon::metrics {
namespace {

class Compare {
 public:
  static Result<Compare> create(tn_ctx* ctx, const Options& options) {
    Compare out;
    out.ctx_ = ctx;
    TN_TRY(data, component_option(ctx, options, "data", "tenon.dataset/1"));
    out.data_ = std::move(data);
    out.plan_ = options.text("plan", "{}");
    out.with_plan_ = options.text("with_plan", "{}");
    out.with_layers_ = options.flag("layers");
    out.mask_ = options.text("mask");
    out.feed_.samples = static_cast<uint64_t>(options.integer("limit"));
    if (options.has("batch")) out.feed_.batch = static_cast<uint64_t>(options.integer("batch"));
    auto* graph = static_cast<tn_graph*>(const_cast<void*>(options.get("with").v.p));
    services.graph->retain(graph);
    out.with_ = OwnedGraph::take(graph);
    return Result<Compare>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    Comparison comparison({raw}, with_.view(), with_layers_);
    std::vector<Difference>& rows = comparison.rows();
    if (rows.empty())
      return invalid("compare: expected values of the same name in both models, got none");
    std::vector<Value> in_a, in_b;
    for (const Difference& row : rows) {
      in_a.push_back(row.in_a);
      in_b.push_back(row.in_b);
    }
    TN_TRY(feed, Feed::make(ctx_, data_, {raw}, feed_));
    TN_TRY(plan, Plan::compile(ctx_, {raw}, in_a, plan_));
    TN_TRY(with, Plan::compile(ctx_, with_.view(), in_b, with_plan_));
    TN_TRY(mask, PaddingMask::find({raw}, mask_));
    const size_t n_a = plan.n_outputs(), n_b = with.n_outputs();
    Progress progress(ctx_, "compare", feed.samples());
    auto each = [&](const Feed::Batch& batch) -> Status {
      TN_CHECK(mask.read(batch.inputs, batch.samples));
      TN_CHECK(with.run(batch.inputs, cancel.raw()));
      Results a(plan, n_a + rows.size(), feed.batch(), batch.samples);
      Results b(with, n_b + rows.size(), feed.batch(), batch.samples);
      std::vector<Status> failures(rows.size());
      parallel_for(ctx_, rows.size(), 1, [&](uint64_t begin, uint64_t end) {
        for (uint64_t row = begin; row < end; ++row)
          failures[row] = rows[row].add(Counting(mask, a.all()[n_a + row]).dl(),
                                        Counting(mask, b.all()[n_b + row]).dl());
      });
      for (Status& failure : failures)
        if (!failure.ok()) return std::move(failure);
      return {};
    };
    TN_CHECK(run_batches(plan, feed, cancel, &progress, each));
    TN_CHECK(mask.check_counts());
    return sink.write(comparison.report(feed.samples()).dump());
  }

 private:
  tn_ctx* ctx_ = nullptr;
  Component data_;
  OwnedGraph with_;
  FeedPlan feed_;
  std::string plan_, with_plan_;
  std::string mask_;  // the input that is 0 at padding, which is not compared
  bool with_layers_ = true;
};

}  // namespace
}  // namespace tenon::metrics

TENON_PASS(compare,
           tenon::metrics::Compare,
           "metrics.compare",
           "layer by layer, how far another model is from this one, as report",
           R"({"properties": {)" TENON_METRICS_OPTIONS R"(,
    "with": {"type": "graph", "description": "the other model"},
    "with_plan": {"type": "object", "description": "how the other model runs"},
    "layers": {"type": "boolean", "default": true, "description": "all values that have the same name in both; false: what the outputs' figures need"},
    )" TENON_MASK_OPTION R"(,
    "limit": {"type": "integer", "minimum": 0, "default": 64, "description": "only this many samples, the first; 0: all"}},
  "required": ["data", "with"]})")
