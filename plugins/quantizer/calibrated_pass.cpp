// SPDX-License-Identifier: Apache-2.0
#include "calibrated_pass.hpp"

#include <set>
#include <utility>

#include "tenon/sdk/original.hpp"

#include "ranges.hpp"
#include "report.hpp"
#include "selection_note.hpp"
#include "storage.hpp"

namespace tenon::quantizer {

Result<CalibratedPass> CalibratedPass::create(tn_ctx* ctx, const Options& options) {
  CalibratedPass out;
  out.ctx_ = ctx;
  TN_TRY(data, FeedOptions::read(ctx, options));
  out.data_ = std::move(data);
  out.choices_ = Choices::from(options);
  out.insertion_ = InsertionPlan::from(options);
  TN_TRY(plan, CalibrationPlan::from(options));
  out.plan_ = std::move(plan);
  out.plan_.observer.symmetric = out.insertion_.is_signed;
  return Result<CalibratedPass>(std::move(out));
}

// A range of a value that is observed neither here nor where no option leaves nodes or products in
// float would be ignored. What a search found before it left some of them in float is fine.
Status CalibratedPass::check_ranges(const Assignment& assignment, Graph graph) const {
  if (plan_.known.empty()) return {};
  Choices all = choices_;
  all.selected = {};
  TN_TRY(others, observed_under_any_products(graph, all));
  std::set<std::string_view> observed;
  for (const std::vector<Value>* some : {&assignment.observed(), &std::as_const(others)})
    for (Value v : *some)
      observed.insert(v.name());
  for (const auto& [name, range] : plan_.known) {
    Value value = graph.find(name);
    if (!value || value.is_constant() || observed.contains(name)) continue;  // or said elsewhere
    TN_TRY(whole, Assignment::make(graph, all));
    return invalid(cat("option ranges: '", name, "': expected a value that is stored in 8 bits ",
                       "with a range of its own (quantizer.calibrate reports them), got one that ",
                       whole.is_stored(value) ? "shares the range of another" : "stays in float"));
  }
  return {};
}

Status CalibratedPass::run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
  Graph graph{raw};
  TN_CHECK(choices_.selected.check(graph));
  TN_TRY(assignment, Assignment::make(graph, choices_));
  TN_CHECK(check_something_taken(assignment));
  TN_CHECK(check_ranges(assignment, graph));
  TN_TRY(feed, Feed::make(ctx_, data_.data, graph, calibration_feed(data_)));
  TN_TRY(ranges, ranges_of(ctx_, graph, assignment, &feed, plan_, cancel));

  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  for (Value v : assignment.values()) {
    size_t g = assignment.group_of(v);
    values.push_back({{"name", v.name()},
                      {"low", ranges.groups[g].low},
                      {"high", ranges.groups[g].high},
                      {"scale", ranges.params[g].scale},
                      {"zero_point", ranges.params[g].zero_point}});
  }
  log_left(ctx_, assignment);
  if (choices_.products != Products::kNone && !assignment.has_product_of_activations())
    log_line(ctx_, TN_LOG_WARNING,
             cat("option products has no effect: the model has no product of two activations",
                 choices_.products == Products::kScores ? " that a Softmax reads" : ""));
  const nlohmann::ordered_json bytes = weight_bytes(assignment);
  Insertion insertion(ctx_, assignment, insertion_);
  TN_TRY(edit, Edit::begin(raw));
  TN_CHECK(insertion_.trained ? keep_original(edit, raw) : edit.set_note(0, kOriginalNote, {}));
  if (insertion_.trained) TN_CHECK(keep_selected(edit, choices_.selected));
  TN_CHECK(insertion.run(edit, ranges.params));
  nlohmann::ordered_json report = report_nodes(assignment, insertion.weights());
  report["values"] = values;
  if (insertion_.trained) report["zeros"] = report_zeros(ctx_, insertion.weights());
  report["calibration"] = {{"samples", feed.samples()},
                           {"batches", feed.batches()},
                           {"observer", ranges.calibrated.observer},
                           {"backend", ranges.calibrated.backend}};
  report["only"] = choices_.selected.only;
  report["skip"] = choices_.selected.skip;
  Storage storage({choices_.selected, insertion_.per_channel});
  if (!insertion_.trained) TN_CHECK(storage.run(edit, assignment));
  TN_CHECK(edit.commit());
  if (!insertion_.trained) TN_CHECK(storage.run_in_bodies(raw));
  report["stored"] = storage.notes();
  report["weight_bytes"] = bytes;
  return sink.write(report.dump());
}

}  // namespace tenon::quantizer
