// SPDX-License-Identifier: Apache-2.0
// "precision.loss_scale_step": what PyTorch's GradScaler does after backward, as nodes of the step:
// divides gradients by the scale, and where one is infinite or NaN, leaves the states that depend
// on gradients as they were and lowers the scale; after enough good steps it raises the scale.
#include <set>

#include <fnmatch.h>
#include <nlohmann/json.hpp>

#include "tenon/sdk/role/pass.hpp"

#include "redirect.hpp"
#include "scaler.hpp"

namespace tenon::precision {
namespace {

bool fits_any(const std::vector<std::string>& patterns, std::string_view name) {
  std::string text(name);
  for (const std::string& pattern : patterns)
    if (fnmatch(pattern.c_str(), text.c_str(), FNM_NOESCAPE) == 0) return true;
  return false;
}

// The nodes that one run adds, with types spelled out.
struct Nodes {
  EditView edit;

  Result<Value> cast(Value v, uint32_t dtype) const {
    return edit.op("Cast", {v}, {{"to", any_dtype(dtype)}});
  }
  Result<Value> number(double x) const { return edit.constant<double>(TN_F64, {}, {x}); }
  Result<Value> count(int32_t x) const { return edit.constant<int32_t>(TN_I32, {}, {x}); }
  // 1 where the gradient has NaN or infinity, else 0.
  Result<Value> flag(Value gradient) const {
    TN_TRY(is_nan, edit.op("IsNaN", {gradient}));
    TN_TRY(is_inf, edit.op("IsInf", {gradient}));
    TN_TRY(is_bad, edit.op("Or", {is_nan, is_inf}));
    TN_TRY(as_number, cast(is_bad, TN_F32));
    return edit.op("ReduceMax", {as_number}, {{"keepdims", 0}});
  }
};

class LossScaleStep {
 public:
  static Result<LossScaleStep> create(tn_ctx*, const Options& options) {
    LossScaleStep out;
    out.gradients_ = options.texts("gradients");
    if (out.gradients_.empty()) out.gradients_ = {"grad/*"};
    out.hold_ = options.texts("hold");
    out.growth_ = options.number("growth_factor");
    out.backoff_ = options.number("backoff_factor");
    out.interval_ = static_cast<int32_t>(options.integer("growth_interval"));
    return out;
  }

  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    Graph before{raw};
    Value scale = before.find(kCurrent), tracker = before.find(kTracker);
    if (!scale || !tracker)
      return {TN_FAILED_PRECONDITION,
              "the loss is not scaled: apply precision.loss_scale before taking gradients"};
    if (before.find(kFoundInf))
      return {TN_FAILED_PRECONDITION, "precision.loss_scale_step was applied already"};
    TN_TRY(gradients, find_gradients(before));
    TN_TRY(edit, Edit::begin(raw));
    Nodes nodes{edit};
    TN_TRY(unscaled, unscale(nodes, gradients, edit.value(scale.id)));
    TN_TRY(found, found_inf(nodes, gradients));
    TN_TRY(held, hold_states(edit, unscaled, found));
    TN_CHECK(update(nodes, edit.value(scale.id), edit.value(tracker.id), found));
    TN_CHECK(edit.output(kFoundInf, found));
    TN_CHECK(edit.commit());
    nlohmann::ordered_json report{{"gradients", gradients.size()}, {"held_states", held}};
    return sink.write(report.dump());
  }

 private:
  // By name of the value, or of the output of the graph that it is.
  Result<std::vector<Value>> find_gradients(Graph graph) const {
    std::vector<Value> out;
    std::set<tn_value_id> seen;
    auto take = [&](Value v, std::string_view name) {
      if (v && fits_any(gradients_, name) && seen.insert(v.id).second) out.push_back(v);
    };
    for (Node node : graph.nodes())
      for (Value v : node.outputs())
        if (v) take(v, v.name());
    std::vector<Value> outputs = graph.outputs();
    for (size_t i = 0; i < outputs.size(); ++i)
      take(outputs[i], graph.output_name(i));
    if (out.empty()) return invalid(cat("option gradients: no value fits ", gradients_.front()));
    for (Value v : out)
      if (v.dtype() != TN_F32)
        return invalid(cat("gradient ", v.name(), ": expected float32, got ", dtype_name(v.dtype()),
                           ": parameters stay in float32"));
    return out;
  }

  // The gradients themselves are read on by what looks for infinity, all else reads the result.
  static Result<std::vector<Value>> unscale(const Nodes& nodes,
                                            const std::vector<Value>& gradients,
                                            Value scale) {
    TN_TRY(wide, nodes.cast(scale, TN_F64));
    TN_TRY(one, nodes.number(1));
    TN_TRY(quotient, nodes.edit.op("Div", {one, wide}));
    TN_TRY(inverse, nodes.cast(quotient, TN_F32));
    std::vector<Value> out;
    for (Value gradient : gradients) {
      Value g = nodes.edit.value(gradient.id);
      std::string name = cat(g.name(), "/unscaled");
      TN_TRY(made, nodes.edit.add({.type = "Mul",
                                   .inputs = {g, inverse},
                                   .name = name,
                                   .scope = g.producer() ? g.producer().scope() : "",
                                   .output_names = {name}}));
      TN_CHECK(redirect(nodes.edit, g, made.output(), {{made, 0}}));
      out.push_back(made.output());
    }
    return out;
  }

  static Result<Value> found_inf(const Nodes& nodes, const std::vector<Value>& gradients) {
    std::vector<Value> flags;
    for (Value gradient : gradients) {
      TN_TRY(flag, nodes.flag(nodes.edit.value(gradient.id)));
      flags.push_back(flag);
    }
    TN_TRY(any, nodes.edit.op("Max", flags));
    TN_TRY(zero, nodes.edit.constant<float>(TN_F32, {}, {0}));
    TN_TRY(found, nodes.edit.add({.type = "Greater",
                                  .inputs = {any, zero},
                                  .name = kFoundInf,
                                  .output_names = {kFoundInf}}));
    return found.output();
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
      if (!touched.contains(outputs[i].id) && !fits_any(hold_, inputs[i].name())) continue;
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

  // GradScaler.update. Products in f64, rounded once, as PyTorch's kernel has them.
  Status update(const Nodes& nodes, Value scale, Value tracker, Value found) const {
    EditView edit = nodes.edit;
    TN_TRY(wide, nodes.cast(scale, TN_F64));
    TN_TRY(growth, nodes.number(growth_));
    TN_TRY(backoff, nodes.number(backoff_));
    TN_TRY(up, edit.op("Mul", {wide, growth}));
    TN_TRY(grown, nodes.cast(up, TN_F32));
    TN_TRY(down, edit.op("Mul", {wide, backoff}));
    TN_TRY(lowered, nodes.cast(down, TN_F32));
    TN_TRY(is_inf, edit.op("IsInf", {grown}));
    TN_TRY(capped, edit.op("Where", {is_inf, scale, grown}));  // it never becomes infinite
    TN_TRY(one, nodes.count(1));
    TN_TRY(zero, nodes.count(0));
    TN_TRY(interval, nodes.count(interval_));
    TN_TRY(counted, edit.op("Add", {tracker, one}));
    TN_TRY(is_due, edit.op("Equal", {counted, interval}));
    TN_TRY(good, edit.op("Where", {is_due, capped, scale}));
    TN_TRY(next_scale, edit.op("Where", {found, lowered, good}));
    TN_TRY(is_reset, edit.op("Or", {found, is_due}));
    TN_TRY(next_tracker, edit.op("Where", {is_reset, zero, counted}));
    TN_CHECK(close(edit, edit.graph().find(kScale), next_scale));
    return close(edit, tracker, next_tracker);
  }
  static Status close(EditView edit, Value before, Value after) {
    TN_CHECK(edit.output(cat(before.name(), "/next"), after));
    return Status(services.edit->pair_state(edit.raw, before.id, after.id));
  }

  std::vector<std::string> gradients_, hold_;
  double growth_ = 2, backoff_ = 0.5;
  int32_t interval_ = 2000;
};

}  // namespace
}  // namespace tenon::precision

TENON_PASS(loss_scale_step,
           tenon::precision::LossScaleStep,
           "precision.loss_scale_step",
           "unscales gradients, skips steps that overflow, updates the scale: after the optimizer",
           R"({
  "properties": {
    "gradients": {"type": ["array", "string"], "items": {"type": "string"},
                  "description": "patterns of values or outputs; grad/* when absent"},
    "hold": {"type": ["array", "string"], "items": {"type": "string"},
             "description": "patterns of further states that a skipped step leaves as they are"},
    "growth_factor": {"type": "number", "exclusiveMinimum": 1, "default": 2,
                      "description": "of the scale after growth_interval good steps"},
    "backoff_factor": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.5,
                       "description": "of the scale after a step with infinity or NaN"},
    "growth_interval": {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 2000,
                        "description": "good steps in a row before the scale grows"}}})")
