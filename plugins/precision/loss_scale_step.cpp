// SPDX-License-Identifier: Apache-2.0
// "precision.loss_scale_step": what PyTorch's GradScaler does after backward, as nodes of the step:
// divides gradients by the scale, and where one is infinite or NaN, leaves the states that depend
// on gradients, and an optimizer's counts, as they were and lowers the scale; after enough good
// steps it raises the scale.
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/optimizer.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "redirect.hpp"
#include "scaler.hpp"

namespace tenon::precision {
namespace {

class LossScaleStep {
 public:
  static Result<LossScaleStep> create(tn_ctx*, const Options& options) {
    LossScaleStep out;
    out.hold_ = options.texts("hold");
    TN_TRY(scaler, scaler_of(options));
    out.scaler_ = scaler;
    return out;
  }

  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    Graph before{raw};
    Value scale = before.find(kCurrent), tracker = before.find(kTracker);
    Value found = before.find(kFoundInf);
    if (!scale || !tracker || !found)
      return {TN_FAILED_PRECONDITION,
              "the gradients are not unscaled: apply precision.loss_scale, take gradients, and "
              "apply precision.unscale first"};
    if (!before.list(TN_LIST_STATES).empty() && is_state(before, tracker))
      return {TN_FAILED_PRECONDITION, "precision.loss_scale_step was applied already"};
    TN_TRY(edit, Edit::begin(raw));
    Nodes nodes{edit};
    found = edit.value(found.id);
    TN_TRY(held, hold_states(edit, unscaled(edit.graph()), found));
    TN_CHECK(update(nodes, edit.value(scale.id), edit.value(tracker.id), found));
    TN_CHECK(edit.commit());
    nlohmann::ordered_json report{{"held_states", held}};
    return sink.write(report.dump());
  }

 private:
  static bool is_state(Graph graph, Value v) {
    for (Value state : graph.list(TN_LIST_STATES))
      if (state == v) return true;
    return false;
  }
  static std::vector<Value> unscaled(Graph graph) {
    std::vector<Value> out;
    for (Node node : graph.nodes())
      for (Value v : node.outputs())
        if (v && v.note(kUnscaledNote).tag != TN_ANY_NONE) out.push_back(v);
    return out;
  }

  // All that gradients reach.
  static std::set<tn_value_id> reached(const std::vector<Value>& from) {
    std::set<tn_value_id> seen;
    std::vector<Value> open = from;
    while (!open.empty()) {
      Value v = open.back();
      open.pop_back();
      if (!seen.insert(v.id).second) continue;
      for (const Use& use : uses_of(v))
        for (Value out : use.node.outputs())
          if (out) open.push_back(out);
    }
    return seen;
  }

  // Running statistics of the forward pass and random keys go on, as in PyTorch.
  Result<std::vector<std::string>> hold_states(EditView edit,
                                               const std::vector<Value>& unscaled,
                                               Value found) const {
    std::set<tn_value_id> touched = reached(unscaled);
    std::vector<Value> inputs = edit.graph().list(TN_LIST_STATES, 0);
    std::vector<Value> outputs = edit.graph().list(TN_LIST_STATES, 1);
    std::vector<std::string> held;
    for (size_t i = 0; i < inputs.size(); ++i) {
      bool updated = inputs[i].note(kUpdatedNote).tag != TN_ANY_NONE;
      bool meant = updated || !matched_by(hold_, inputs[i].name()).empty();
      if (!meant && !touched.contains(outputs[i].id)) continue;
      if (inputs[i] == outputs[i]) continue;
      std::vector<Use> stay = uses_of(outputs[i]);
      std::string name = cat(inputs[i].name(), "/held");
      TN_TRY(made, edit.add({.type = "Where",
                             .inputs = {found, inputs[i], outputs[i]},
                             .name = name,
                             .output_names = {name}}));
      stay.push_back({made, 2});
      TN_CHECK(redirect(edit, outputs[i], made.output(), stay));
      held.emplace_back(inputs[i].name());
    }
    return held;
  }

  // Products in f64, rounded once, as PyTorch's kernel of GradScaler.update has them.
  Status update(const Nodes& nodes, Value scale, Value tracker, Value found) const {
    EditView edit = nodes.edit;
    TN_TRY(wide, nodes.cast(scale, TN_F64));
    TN_TRY(grown, moved(nodes, wide, scaler_.growth, "Min", scaler_.highest));
    TN_TRY(fallen, moved(nodes, wide, scaler_.backoff, "Max", scaler_.lowest));
    TN_TRY(is_inf, edit.op("IsInf", {grown}));
    TN_TRY(capped, edit.op("Where", {is_inf, scale, grown}));  // it never becomes infinite
    TN_TRY(one, nodes.count(1));
    TN_TRY(zero, nodes.count(0));
    TN_TRY(interval, nodes.count(static_cast<int32_t>(scaler_.interval)));
    TN_TRY(counted, edit.op("Add", {tracker, one}));
    TN_TRY(is_due, edit.op("Equal", {counted, interval}));
    TN_TRY(good, edit.op("Where", {is_due, capped, scale}));
    TN_TRY(lowered, lowered_scale(nodes, scale, fallen, found, is_due));
    TN_TRY(next_scale, edit.op("Where", {found, lowered, good}));
    TN_TRY(is_reset, edit.op("Or", {found, is_due}));
    TN_TRY(next_tracker, edit.op("Where", {is_reset, zero, counted}));
    TN_CHECK(close(edit, edit.graph().find(kScale), next_scale));
    return close(edit, tracker, next_tracker);
  }
  static Result<Value> moved(
      const Nodes& nodes, Value wide, double factor, std::string_view bound, double at) {
    TN_TRY(by, nodes.number(factor));
    TN_TRY(product, nodes.edit.op("Mul", {wide, by}));
    if (at == 0 || std::isinf(at)) return nodes.cast(product, TN_F32);
    TN_TRY(limit, nodes.number(at));
    TN_TRY(bounded, nodes.edit.op(bound, {product, limit}));
    return nodes.cast(bounded, TN_F32);
  }
  // What an overflow makes of the scale. With hysteresis a state counts how many are left until one
  // counts; as all states it starts as zero, which stands for all.
  Result<Value> lowered_scale(
      const Nodes& nodes, Value scale, Value fallen, Value found, Value is_due) const {
    if (scaler_.hysteresis <= 1) return fallen;
    EditView edit = nodes.edit;
    TN_TRY(state, edit.input(kHysteresis, Type(TN_I32, {})));
    TN_TRY(one, nodes.count(1));
    TN_TRY(zero, nodes.count(0));
    TN_TRY(all, nodes.count(static_cast<int32_t>(scaler_.hysteresis)));
    TN_TRY(is_new, edit.op("Equal", {state, zero}));
    TN_TRY(left, edit.op("Where", {is_new, all, state}));
    TN_TRY(is_last, edit.op("Equal", {left, one}));
    TN_TRY(fewer, edit.op("Sub", {left, one}));
    TN_TRY(after, edit.op("Where", {is_last, left, fewer}));
    Value renewed = all;
    if (!scaler_.consecutive) {
      TN_TRY(at_growth, edit.op("Where", {is_due, all, left}));
      renewed = at_growth;
    }
    TN_TRY(next, edit.op("Where", {found, after, renewed}));
    TN_CHECK(close(edit, state, next));
    return edit.op("Where", {is_last, fallen, scale});
  }
  static Status close(EditView edit, Value before, Value after) {
    TN_CHECK(edit.output(cat(before.name(), "/next"), after));
    return Status(services.edit->pair_state(edit.raw, before.id, after.id));
  }

  std::vector<std::string> hold_;
  Scaler scaler_;
};

}  // namespace
}  // namespace tenon::precision

TENON_PASS(loss_scale_step,
           tenon::precision::LossScaleStep,
           "precision.loss_scale_step",
           "skips steps that overflow and updates the scale: after the optimizer",
           R"({"properties": {)" PRECISION_SCALER_OPTIONS R"(,
    "hold": {"type": ["array", "string"], "items": {"type": "string"},
             "description": "patterns of further states that a skipped step leaves as they are"},
    "growth_factor": {"type": "number", "exclusiveMinimum": 1,
                      "description": "growth factor of the scale after growth_interval good steps; the preset's when absent"},
    "backoff_factor": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1,
                       "description": "backoff factor of the scale after a step with infinity or NaN"},
    "growth_interval": {"type": "integer", "minimum": 1, "maximum": 2147483647,
                        "description": "consecutive good steps before the scale grows"},
    "min_scale": {"type": "number", "minimum": 0, "description": "minimum of the scale"},
    "max_scale": {"type": "number", "exclusiveMinimum": 0, "description": "maximum of the scale"},
    "hysteresis": {"type": "integer", "minimum": 1, "maximum": 2147483647,
                   "description": "hysteresis: overflows since the scale last grew until one lowers it"},
    "consecutive_hysteresis": {"type": "boolean", "description": "DeepSpeed's: hysteresis begins anew at each good step"}}})")
