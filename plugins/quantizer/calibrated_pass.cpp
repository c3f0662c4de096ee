// SPDX-License-Identifier: Apache-2.0
#include "calibrated_pass.hpp"

#include <algorithm>

#include "tenon/sdk/original.hpp"

#include "report.hpp"
#include "storage.hpp"

namespace tenon::quantizer {
namespace {

// Values with one scale need a range that holds all of them.
std::vector<tn_range> group_ranges(const Assignment& assignment,
                                   const std::vector<tn_range>& observed) {
  std::vector<tn_range> out(assignment.group_count(), tn_range{0, 0, 0, 0});
  for (size_t i = 0; i < observed.size(); ++i) {
    tn_range& group = out[assignment.group_of(assignment.observed()[i])];
    group.low = std::min(group.low, observed[i].low);
    group.high = std::max(group.high, observed[i].high);
  }
  return out;
}

Products products_of(std::string_view name) {
  if (name == "all") return Products::kAll;
  return name == "scores" ? Products::kScores : Products::kNone;
}

}  // namespace

Result<CalibratedPass> CalibratedPass::create(tn_ctx* ctx, const Options& options) {
  CalibratedPass out;
  out.ctx_ = ctx;
  TN_TRY(data, component_option(ctx, options, "data", "tenon.dataset/1"));
  out.data_ = std::move(data);
  out.samples_ = static_cast<uint64_t>(options.integer("samples"));
  out.batch_ = static_cast<uint64_t>(options.integer("batch"));
  out.choices_ = {options.texts("skip"), products_of(options.text("products")), false};
  out.insertion_.is_signed = options.text("activations") == "s8";
  out.insertion_.per_channel = options.flag("per_channel");
  out.insertion_.largest = options.flag("reduce_range") ? 63 : 127;
  if (options.has("weight_bits"))
    out.insertion_.largest = (1 << (options.integer("weight_bits") - 1)) - 1;
  out.insertion_.integer_bias = options.text("bias") == "int32";
  out.plan_ = CalibrationPlan::from(options);
  out.plan_.symmetric = out.insertion_.is_signed;
  return Result<CalibratedPass>(std::move(out));
}

Status CalibratedPass::run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
  Graph graph{raw};
  TN_CHECK(check_skipped(graph, choices_.skip));
  TN_TRY(assignment, Assignment::make(graph, choices_));
  TN_CHECK(check_something_taken(assignment));
  TN_TRY(feed, Feed::make(ctx_, data_, graph, calibration_feed(samples_, batch_)));
  TN_TRY(calibrated, calibrate(ctx_, graph, assignment.observed(), &feed, plan_, cancel));
  std::vector<tn_range> ranges = group_ranges(assignment, calibrated.ranges);
  std::vector<Params> groups;
  for (const tn_range& range : ranges)
    groups.push_back(params_for(range, insertion_.is_signed));

  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  for (Value v : assignment.values()) {
    size_t g = assignment.group_of(v);
    values.push_back({{"name", v.name()},
                      {"low", ranges[g].low},
                      {"high", ranges[g].high},
                      {"scale", groups[g].scale},
                      {"zero_point", groups[g].zero_point}});
  }
  log_left(ctx_, assignment);
  Insertion insertion(ctx_, assignment, insertion_);
  TN_TRY(edit, Edit::begin(raw));
  TN_CHECK(insertion_.trained ? keep_original(edit, raw) : edit.set_note(0, kOriginalNote, {}));
  TN_CHECK(insertion.run(edit, groups));
  nlohmann::ordered_json report = report_nodes(assignment, insertion.weights());
  report["values"] = values;
  report["calibration"] = {{"samples", feed.samples()},
                           {"batches", feed.batches()},
                           {"observer", calibrated.observer},
                           {"backend", calibrated.backend}};
  report["skip"] = choices_.skip;
  Storage storage({choices_.skip, insertion_.per_channel});
  if (!insertion_.trained) TN_CHECK(storage.run(edit, assignment));
  TN_CHECK(edit.commit());
  if (!insertion_.trained) TN_CHECK(storage.run_in_bodies(raw));
  report["stored"] = storage.notes();
  return sink.write(report.dump());
}

}  // namespace tenon::quantizer
