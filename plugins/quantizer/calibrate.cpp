// SPDX-License-Identifier: Apache-2.0
// "quantizer.calibrate": the ranges that several observers choose, all of them from one pass over
// the data. The graph stays as it is; the report is the answer, for option `ranges` of other
// passes:
// {"ranges": {NAME: {VALUE: [low, high]}}, "with_more": the same with the data of `more` as well,
// "calibration"}. So whoever tries several observers, or takes more data when one is chosen, runs
// the model on each sample once.
#include <algorithm>

#include "tenon/sdk/role/pass.hpp"

#include "calibrated_pass.hpp"
#include "calibration_options.hpp"
#include "report.hpp"

namespace tenon::quantizer {
namespace {

class Calibrate : public CalibratedPass {
 public:
  static Result<Calibrate> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(base, CalibratedPass::create(ctx, options));
    Calibrate out(std::move(base));
    out.any_products_ = options.flag("any_products");
    if (options.has("more")) {
      TN_TRY(more, component_option(ctx, options, "more", "tenon.dataset/1"));
      out.more_ = std::move(more);
    }
    nlohmann::json observers = nlohmann::json::parse(options.text("observers"));
    for (const auto& [name, one] : observers.items()) {
      const nlohmann::json given = one.is_object() ? one.value("options", nlohmann::json()) : one;
      const bool has_options = given.is_object() || given.empty();
      if (!one.is_object() || !has_options || !one.value("observer", nlohmann::json()).is_string())
        return invalid(cat("option observers: ", name, R"(: expected {"observer": id, "options": )",
                           "{...}}, got ", one.dump()));
      out.names_.push_back(name);
      out.observers_.push_back(
          {one["observer"], given.empty() ? "" : given.dump(), out.insertion_.is_signed});
    }
    if (out.names_.empty()) return invalid("option observers: expected at least one, got none");
    return Result<Calibrate>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    Graph graph{raw};
    TN_CHECK(choices_.selected.check(graph));
    TN_TRY(assignment, Assignment::make(graph, choices_));
    TN_CHECK(check_something_taken(assignment));
    TN_TRY(feed, Feed::make(ctx_, data_.data, graph, calibration_feed(data_)));
    std::vector<Value> values = assignment.observed();
    if (any_products_) {
      TN_TRY(all, observed_under_any_products(graph, choices_));
      values = std::move(all);
    }
    TN_TRY(calibration, Calibration::make(ctx_, graph, values, observers_, plan_));
    TN_CHECK(calibration.see(&feed, cancel));
    nlohmann::ordered_json report;
    TN_CHECK(write_ranges(calibration, values, &report["ranges"]));
    uint64_t samples = feed.samples();
    if (more_ && samples < data_.samples) {
      FeedPlan plan = calibration_feed(data_);
      plan.option = "more";
      plan.samples =
          std::min(data_.samples - samples, more_.table<tn_dataset>()->size(more_.self()));
      if (!feed.is_fixed() || plan.samples >= feed.batch()) {
        TN_TRY(rest, Feed::make(ctx_, more_, graph, plan));
        TN_CHECK(calibration.see(&rest, cancel));
        samples += rest.samples();
      }
    }
    if (more_) TN_CHECK(write_ranges(calibration, values, &report["with_more"]));
    report["calibration"] = {{"samples", samples}, {"backend", calibration.backend()}};
    return sink.write(report.dump());
  }

 private:
  explicit Calibrate(CalibratedPass base) : CalibratedPass(std::move(base)) {}

  Status write_ranges(const Calibration& calibration,
                      const std::vector<Value>& values,
                      nlohmann::ordered_json* out) const {
    for (size_t k = 0; k < names_.size(); ++k) {
      TN_TRY(ranges, calibration.ranges(k));
      nlohmann::ordered_json& one = (*out)[names_[k]] = nlohmann::ordered_json::object();
      for (size_t i = 0; i < values.size(); ++i)
        one[std::string(values[i].name())] = {ranges[i].low, ranges[i].high};
    }
    return {};
  }

  std::vector<std::string> names_;
  std::vector<ObserverPlan> observers_;
  Component more_;
  bool any_products_ = false;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(calibrate,
           tenon::quantizer::Calibrate,
           "quantizer.calibrate",
           "the ranges that several observers choose, from one pass over the data, as report",
           R"({"required": ["data", "observers"], "properties": {
    "observers": {"type": "object", "description": "by a name: {\"observer\": id or last word, \"options\": {...}}"},
    "more": {"type": "component", "role": "tenon.dataset/1", "description": "data that is seen after that; the report has ranges without and with it"},
    "any_products": {"type": "boolean", "default": false, "description": "ranges for each choice of products, to choose one later"},
    )" TENON_OBSERVED_OPTIONS "," TENON_STORAGE_OPTIONS "}}")
