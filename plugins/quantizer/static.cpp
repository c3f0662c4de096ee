// SPDX-License-Identifier: Apache-2.0
// "quantizer.static": post-training quantization with ranges from calibration data. The result is
// the same graph with QuantizeLinear and DequantizeLinear nodes, which standard runtimes fuse.
#include <algorithm>

#include "tenon/sdk/role/pass.hpp"

#include "calibration.hpp"
#include "report.hpp"

namespace tenon::quantizer {
namespace {

class Static {
 public:
  static Result<Static> create(tn_ctx* ctx, const Options& options) {
    Static out;
    out.ctx_ = ctx;
    TN_TRY(data, component_option(ctx, options, "data", "tenon.dataset/1"));
    out.data_ = std::move(data);
    out.samples_ = static_cast<uint64_t>(options.integer("samples"));
    out.batch_ = static_cast<uint64_t>(options.integer("batch"));
    out.choices_ = {options.texts("skip"), options.flag("products"), false};
    out.insertion_.is_signed = options.text("activations") == "s8";
    out.insertion_.per_channel = options.flag("per_channel");
    out.insertion_.largest = options.flag("reduce_range") ? 63 : 127;
    out.insertion_.integer_bias = options.text("bias") == "int32";
    out.plan_ = {options.text("observer"), options.text("observer_options"),
                 options.texts("backend"), out.insertion_.is_signed,
                 options.text("non_finite") == "refuse"};
    if (out.plan_.backends.empty()) out.plan_.backends = {"onednn", "reference"};
    return out;
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    Graph graph{raw};
    TN_TRY(assignment, Assignment::make(graph, choices_));
    TN_CHECK(check_something_taken(assignment));
    TN_TRY(feed, DataFeed::make(ctx_, data_, graph, samples_, batch_));
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
    TN_CHECK(insertion.run(edit, groups));
    nlohmann::ordered_json report = report_nodes(assignment, insertion.weights());
    report["values"] = values;
    report["calibration"] = {{"samples", feed.samples()},
                             {"batches", feed.batches()},
                             {"observer", calibrated.observer},
                             {"backend", calibrated.backend}};
    report["skip"] = choices_.skip;
    TN_CHECK(edit.commit());
    return sink.write(report.dump());
  }

 private:
  // Values with one scale need a range that holds all of them.
  static std::vector<tn_range> group_ranges(const Assignment& assignment,
                                            const std::vector<tn_range>& observed) {
    std::vector<tn_range> out(assignment.group_count(), tn_range{0, 0, 0, 0});
    for (size_t i = 0; i < observed.size(); ++i) {
      tn_range& group = out[assignment.group_of(assignment.observed()[i])];
      group.low = std::min(group.low, observed[i].low);
      group.high = std::max(group.high, observed[i].high);
    }
    return out;
  }

  tn_ctx* ctx_ = nullptr;
  Component data_;
  uint64_t samples_ = 0, batch_ = 1;
  Choices choices_;
  InsertionPlan insertion_;
  CalibrationPlan plan_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(static,
           tenon::quantizer::Static,
           "quantizer.static",
           "8-bit weights and activations, ranges from calibration data",
           R"({
  "properties": {
    "data": {"type": "component", "role": "tenon.dataset/1", "description": "calibration data: a data set, an id or a file"},
    "samples": {"type": "integer", "minimum": 1, "default": 256, "description": "at most so many samples"},
    "batch": {"type": "integer", "minimum": 1, "default": 8, "description": "samples at once"},
    "observer": {"type": "string", "default": "mse",
                 "description": "entropy, minmax, moving_average, mse, percentile, or the id of another"},
    "observer_options": {"type": "object", "description": "options of the observer"},
    "activations": {"type": "string", "enum": ["u8", "s8"], "default": "u8",
                    "description": "u8: with a zero point; s8: symmetric"},
    "per_channel": {"type": "boolean", "default": true, "description": "a scale for each output channel of a weight"},
    "reduce_range": {"type": "boolean", "default": false,
                     "description": "weights in 7 bits, for CPUs without VNNI"},
    "bias": {"type": "string", "enum": ["int32", "float32"], "default": "int32", "description": "how biases are stored"},
    "products": {"type": "boolean", "default": false, "description": "quantize products of two activations, as in attention"},
    "skip": {"type": ["array", "string"], "items": {"type": "string"},
             "description": "nodes to leave in float: patterns of names, operators or scopes, with * and ?"},
    "backend": {"type": ["array", "string"], "items": {"type": "string"},
                "description": "runs the float model; the first that is there of: onednn, reference"},
    "non_finite": {"type": "string", "enum": ["refuse", "ignore"], "default": "refuse",
                   "description": "NaN or infinity in a value during calibration"}},
  "required": ["data"]})")
