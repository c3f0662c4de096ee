// SPDX-License-Identifier: Apache-2.0
// "precision.loss_scale": multiplies the loss by a scale that is state, before gradients are taken,
// so that small gradients do not vanish in float16 (Micikevicius et al., "Mixed precision
// training", ICLR 2018, section 3.2). "precision.loss_scale_step" does the rest after the
// optimizer.
#include <nlohmann/json.hpp>

#include "tenon/sdk/role/pass.hpp"

#include "scaler.hpp"

namespace tenon::precision {
namespace {

class LossScale {
 public:
  static Result<LossScale> create(tn_ctx*, const Options& options) {
    TN_TRY(scaler, scaler_of(options));
    return LossScale{options.text("output"), scaler};
  }

  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    Graph graph{raw};
    if (graph.find(kScale))
      return {TN_FAILED_PRECONDITION,
              cat("the graph has a value ", kScale, " already: the loss is scaled once")};
    TN_TRY(loss, find_loss(graph));
    TN_TRY(edit, Edit::begin(raw));
    TN_TRY(scale, edit.input(kScale, Type(TN_F32, {})));
    TN_TRY(tracker, edit.input(kTracker, Type(TN_I32, {})));
    (void)tracker;  // paired by the other pass
    TN_TRY(zero, edit.constant<float>(TN_F32, {}, {0}));
    TN_TRY(init, edit.constant<float>(TN_F32, {}, {static_cast<float>(scaler_.init)}));
    // States start as zeros, which no scale ever is.
    TN_TRY(is_set, edit.op("Greater", {scale, zero}));
    TN_TRY(current, edit.add({.type = "Where",
                              .inputs = {is_set, scale, init},
                              .name = kCurrent,
                              .output_names = {kCurrent}}));
    Value wide = loss;
    if (loss.dtype() != TN_F32) {
      TN_TRY(cast, edit.op("Cast", {loss}, {{"to", any_dtype(TN_F32)}}));
      wide = cast;
    }
    TN_TRY(scaled, edit.add({.type = "Mul",
                             .inputs = {wide, current.output()},
                             .name = kScaledLoss,
                             .output_names = {kScaledLoss}}));
    TN_CHECK(edit.output(kScaledLoss, scaled.output()));
    TN_CHECK(edit.commit());
    nlohmann::ordered_json report{{"output", kScaledLoss}};
    // Numbers other than 0 that states begin with; whoever runs the step sets them.
    if (scaler_.tracker > 0) report["initial"][kTracker] = scaler_.tracker;
    if (scaler_.hysteresis_left > 0) report["initial"][kHysteresis] = scaler_.hysteresis_left;
    return sink.write(report.dump());
  }

  Result<Value> find_loss(Graph graph) const {
    std::vector<Value> outputs = graph.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!output_.empty() && graph.output_name(i) != output_) continue;
      Type type = outputs[i].type();
      bool is_scalar = type.ranked && type.is_static() && type.elements() == 1;
      if (is_scalar && is_float(type.dtype)) return outputs[i];
      return invalid(cat("output ", graph.output_name(i), ": expected a loss, one float number"));
    }
    return invalid(output_.empty() ? std::string("the graph has no output")
                                   : cat("option output: the graph has no output '", output_, "'"));
  }

  std::string output_;
  Scaler scaler_;
};

}  // namespace
}  // namespace tenon::precision

TENON_PASS(loss_scale,
           tenon::precision::LossScale,
           "precision.loss_scale",
           "multiplies the loss by a scale that is state: before gradients",
           R"({"properties": {)" PRECISION_SCALER_OPTIONS R"(,
    "output": {"type": "string", "description": "the loss; the first output when absent"},
    "init_scale": {"type": "number", "exclusiveMinimum": 0, "maximum": 3.4028234663852886e38,
                   "description": "initial scale; the preset's when absent, torch: 65536"}}})")
