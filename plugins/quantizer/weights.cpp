// SPDX-License-Identifier: Apache-2.0
// "quantizer.weights": weights in 8 bits, or of products in 4, computation in float. A file of a
// quarter or an eighth of the size and no calibration.
#include <algorithm>

#include "tenon/sdk/role/pass.hpp"

#include "report.hpp"
#include "storage.hpp"

namespace tenon::quantizer {
namespace {

class Weights {
 public:
  static Result<Weights> create(tn_ctx* ctx, const Options& options) {
    Weights out;
    out.ctx_ = ctx;
    out.choices_ = {.selected = Selected::read(options), .weights_only = true};
    out.plan_.per_channel = options.flag("per_channel");
    if (options.integer("bits") == 4) out.plan_.block = options.integer("group");
    if (out.plan_.block > 0 && !out.plan_.per_channel)
      log_line(
          ctx, TN_LOG_WARNING,
          "option per_channel: false has no effect on weights in 4 bits, which have a scale for "
          "each group (option group)");
    out.plan_.clips = options.flag("clip");
    return out;
  }
  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    TN_CHECK(choices_.selected.check({raw}));
    TN_TRY(assignment, Assignment::make({raw}, choices_));
    const nlohmann::ordered_json bytes = weight_bytes(assignment);
    Insertion insertion(ctx_, assignment, plan_);
    Storage storage({choices_.selected, plan_.per_channel});
    TN_TRY(edit, Edit::begin(raw));
    TN_CHECK(insertion.run(edit, {}));
    const std::vector<WeightNote>& notes = insertion.weights();
    if (plan_.block > 0 && std::none_of(notes.begin(), notes.end(),
                                        [](const WeightNote& one) { return one.in_blocks; }))
      log_line(
          ctx_, TN_LOG_WARNING,
          "option bits: 4 has no effect: the model has no product with a stored matrix outside "
          "of control flow; its other weights are stored in 8 bits");
    nlohmann::ordered_json report = report_nodes(assignment, insertion.weights());
    TN_CHECK(storage.run(edit, assignment));
    TN_CHECK(edit.commit());
    TN_CHECK(storage.run_in_bodies(raw));
    if (storage.notes().empty()) TN_CHECK(check_something_taken(assignment));
    report["stored"] = storage.notes();
    report["weight_bytes"] = bytes;
    report["float_constants"] = float_constants({raw});
    return sink.write(report.dump());
  }

 private:
  tn_ctx* ctx_ = nullptr;
  Choices choices_;
  InsertionPlan plan_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(weights,
           tenon::quantizer::Weights,
           "quantizer.weights",
           "8-bit or 4-bit weights, computation in float",
           R"({
  "properties": {
    "bits": {"type": "integer", "enum": [4, 8], "default": 8,
             "description": "4: weights of products in int4, a scale for each group; the others in 8"},
    "group": {"needs": {"bits": [4]}, "type": "integer", "minimum": 8, "default": 32, "description": "with 4 bits: group size, elements that share a scale"},
    "clip": {"needs": {"bits": [4]}, "type": "boolean", "default": true,
             "description": "with 4 bits: scales that clip the largest elements where that leaves less error; else the maximum over 7"},
    "per_channel": {"type": "boolean", "default": true, "description": "a scale for each output channel"},
    )" TENON_SELECTED_OPTIONS("layers to store in fewer bits") "}}")
