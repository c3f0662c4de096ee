// SPDX-License-Identifier: Apache-2.0
// "precision.unscale": divides gradients by the loss scale, and finds out whether one is infinite
// or NaN: before clipping and the optimizer.
#include <set>

#include <nlohmann/json.hpp>

#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "redirect.hpp"
#include "scaler.hpp"

namespace tenon::precision {
namespace {

// 1 where the gradient has NaN or infinity, else 0.
Result<Value> flag_of(const Nodes& nodes, Value gradient) {
  TN_TRY(is_nan, nodes.edit.op("IsNaN", {gradient}));
  TN_TRY(is_inf, nodes.edit.op("IsInf", {gradient}));
  TN_TRY(is_bad, nodes.edit.op("Or", {is_nan, is_inf}));
  TN_TRY(as_number, nodes.cast(is_bad, TN_F32));
  return nodes.edit.op("ReduceMax", {as_number}, {{"keepdims", 0}});
}

class Unscale {
 public:
  static Result<Unscale> create(tn_ctx*, const Options& options) {
    Unscale out;
    out.gradients_ = options.texts("gradients");
    if (out.gradients_.empty()) out.gradients_ = {"grad/*"};
    return out;
  }

  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    Graph before{raw};
    Value scale = before.find(kCurrent);
    if (!scale)
      return {TN_FAILED_PRECONDITION,
              "the loss is not scaled: apply precision.loss_scale before taking gradients"};
    if (before.find(kFoundInf))
      return {TN_FAILED_PRECONDITION, "precision.unscale was applied already"};
    TN_TRY(gradients, find_gradients(before));
    TN_TRY(edit, Edit::begin(raw));
    Nodes nodes{edit};
    TN_CHECK(unscale(nodes, gradients, edit.value(scale.id)));
    TN_TRY(found, found_inf(nodes, gradients));
    TN_CHECK(edit.output(kFoundInf, found));
    TN_CHECK(edit.commit());
    return sink.write(nlohmann::json{{"gradients", gradients.size()}}.dump());
  }

 private:
  // By name of the value, or of the output of the graph that it is.
  Result<std::vector<Value>> find_gradients(Graph graph) const {
    std::vector<Value> out;
    std::set<tn_value_id> seen;
    auto take = [&](Value v, std::string_view name) {
      if (v && !matched_by(gradients_, name).empty() && seen.insert(v.id).second) out.push_back(v);
    };
    for (Node node : graph.nodes())
      for (Value v : node.outputs())
        if (v) take(v, v.name());
    std::vector<Value> outputs = graph.outputs();
    for (size_t i = 0; i < outputs.size(); ++i)
      take(outputs[i], graph.output_name(i));
    if (out.empty())
      return invalid(cat("option gradients: no value fits '", gradients_.front(), "'"));
    for (Value v : out)
      if (v.dtype() != TN_F32)
        return invalid(cat("gradient ", v.name(), ": expected float32, got ", dtype_name(v.dtype()),
                           ": parameters stay in float32"));
    return out;
  }

  // The gradients themselves are read on by what looks for infinity, all else reads the result.
  static Status unscale(const Nodes& nodes, const std::vector<Value>& gradients, Value scale) {
    TN_TRY(wide, nodes.cast(scale, TN_F64));
    TN_TRY(one, nodes.number(1));
    TN_TRY(quotient, nodes.edit.op("Div", {one, wide}));
    TN_TRY(inverse, nodes.cast(quotient, TN_F32));
    for (Value gradient : gradients) {
      Value g = nodes.edit.value(gradient.id);
      std::string name = cat(g.name(), "/unscaled");
      TN_TRY(made, nodes.edit.add({.type = "Mul",
                                   .inputs = {g, inverse},
                                   .name = name,
                                   .scope = g.producer() ? g.producer().scope() : "",
                                   .output_names = {name}}));
      TN_CHECK(redirect(nodes.edit, g, made.output(), {{made, 0}}));
      TN_CHECK(nodes.edit.set_note(made.output().id, kUnscaledNote, any_bool(true)));
    }
    return {};
  }

  static Result<Value> found_inf(const Nodes& nodes, const std::vector<Value>& gradients) {
    std::vector<Value> flags;
    for (Value gradient : gradients) {
      TN_TRY(flag, flag_of(nodes, nodes.edit.value(gradient.id)));
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

  std::vector<std::string> gradients_;
};

}  // namespace
}  // namespace tenon::precision

TENON_PASS(unscale,
           tenon::precision::Unscale,
           "precision.unscale",
           "divides gradients by the loss scale and looks for infinity: before the optimizer",
           R"({
  "properties": {
    "gradients": {"type": ["array", "string"], "items": {"type": "string"},
                  "description": "patterns of values or outputs; grad/* when absent"}}})")
