// SPDX-License-Identifier: Apache-2.0
#include "step_graph.hpp"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "tenon/role/loss.h"
#include "tenon/role/pass.h"

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/match.hpp"
#include "tenon/sdk/notes.hpp"

#include "composed.hpp"
#include "drive.hpp"
#include "joint_passes.hpp"
#include "objective.hpp"
#include "step_names.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;

constexpr std::string_view kLoss = "loss";

std::string summary(StepSizes sizes) {
  std::string steps = sizes.length > 0 ? cat(", ", sizes.length, " steps each") : "";
  return cat(sizes.batch, steps);
}

// The model for a batch of these sizes, with all its sizes known.
Result<OwnedGraph> bound(const Recipe& recipe, StepSizes sizes) {
  std::vector<Type> types;
  for (const Field& field : recipe.inputs)
    types.push_back(field.type_for(sizes));
  std::vector<std::unique_ptr<TypeView>> views;
  std::vector<const tn_type*> raw;
  for (const Type& type : types) {
    views.push_back(std::make_unique<TypeView>(type));
    raw.push_back(views.back()->get());
  }
  tn_graph* made = nullptr;
  Status failed(services.graph->bind(recipe.model, raw.data(), raw.size(), &made));
  if (!failed.ok()) return std::move(failed).in(cat("the model for batches of ", summary(sizes)));
  return OwnedGraph::take(made);
}

// What a loss adds and asks to be trained is kept by name.
struct Trained {
  EditView edit;
  std::vector<std::string> names;
  static tn_status* add(void* self, tn_value_id id) {
    auto& trained = *static_cast<Trained*>(self);
    return guard([&]() -> Status {
      Value value = trained.edit.value(id);
      if (!value.is_constant()) return invalid("expected a constant of the loss to train");
      trained.names.emplace_back(value.name());
      return {};
    });
  }
};

std::vector<tn_value_id> ids_of(const std::vector<Value>& values) {
  std::vector<tn_value_id> out;
  for (Value value : values)
    out.push_back(value.id);
  return out;
}

// Losses of a float32 model see targets of float64 in its type: where steps are in float64, this
// Cast is one to that as well, when the loss has become so, and keeps their digits.
Result<Value> as_predicted(EditView edit, Value target, const std::vector<Value>& predictions) {
  auto is_double = [](Value v) { return v.dtype() == TN_F64; };
  if (!is_double(target) || std::ranges::any_of(predictions, is_double)) return target;
  return edit.op("Cast", {target}, {{"to", any_dtype(TN_F32)}});
}

// Writes the loss; targets are new inputs. Gives the names that the loss wants trained.
Result<std::vector<std::string>> add_loss(EditView edit,
                                          const Recipe& recipe,
                                          const std::vector<Field>& wanted_targets,
                                          const std::vector<Type>& target_types,
                                          const std::vector<Value>& predictions,
                                          std::vector<Field>* targets) {
  std::vector<Value> inputs = edit.graph().inputs(), wanted;
  inputs.resize(recipe.inputs.size());
  for (size_t i = 0; i < wanted_targets.size(); ++i) {
    TN_TRY(target, edit.input(cat("target/", wanted_targets[i].name), target_types[i]));
    TN_TRY(seen, as_predicted(edit, target, predictions));
    wanted.push_back(seen);
  }
  auto in = ids_of(inputs), out = ids_of(predictions), target_ids = ids_of(wanted);
  Trained trained{edit, {}};
  tn_objective given{sizeof given, 0,           in.size(),         in.data(),
                     out.size(),   out.data(),  target_ids.size(), target_ids.data(),
                     &trained,     Trained::add};
  tn_value_id made = 0;
  TN_CHECK(Status(recipe.loss.table<tn_loss>()->build(recipe.loss.self(), edit.raw, &given, &made))
               .in(cat("loss ", recipe.loss.id())));
  TN_CHECK(edit.output(kLoss, edit.value(made)));
  if (targets) {
    *targets = wanted_targets;
    for (size_t i = 0; i < wanted.size(); ++i) {
      tn_any classes = wanted[i].note(kClassesNote), ignored = wanted[i].note(kIgnoredNote);
      if (classes.tag != TN_ANY_NONE) (*targets)[i].classes = int_of(classes, 0);
      if (ignored.tag != TN_ANY_NONE) (*targets)[i].ignored = int_of(ignored, 0);
    }
  }
  return trained.names;
}

// As autodiff.value_and_grad writes it; a sum has an expanded constant as its gradient too.
bool is_zero(Value gradient) {
  Node node = gradient.producer();
  return node && node.is("Expand") && scalar_of(node.input(0)) == 0.0;
}

// What the loss does not depend on is no parameter: weight decay would pull it to zero.
Result<size_t> drop_zero_gradients(tn_graph* graph) {
  TN_TRY(edit, Edit::begin(graph));
  std::vector<Value> outputs = edit.graph().outputs();
  size_t left = 0;
  for (uint64_t i = outputs.size(); i-- > 0;) {
    if (!edit.graph().output_name(i).starts_with("grad/")) continue;
    if (!is_zero(outputs[i])) {
      ++left;
    } else {
      Node node = outputs[i].producer();
      TN_CHECK(services.edit->remove_output(edit.raw, i));
      if (node.output().consumer_count() == 0 && !node.output().is_output())
        TN_CHECK(edit.erase(node));
    }
  }
  TN_CHECK(edit.commit());
  return left;
}

Status apply_update(const Recipe& recipe, tn_graph* graph, const Cancel& cancel) {
  json options = json::object();
  if (!recipe.groups.empty()) options["groups"] = json::parse(recipe.groups);
  TN_TRY(pass, composed(recipe.ctx, "tenon.pass/1", "trainer.step", "optimizer", recipe.optimizer,
                        options.dump()));
  StringSink report;
  return Status(pass.table<tn_pass>()->run(pass.self(), graph, cancel.raw(), report.get()));
}

// What a batch of this size counts for among others of its window.
json weight_of(const tn_graph* graph, uint64_t batch) {
  return {{"samples", batch},
          {"share", noted(graph, kShareNote)},
          {"divisor", noted(graph, kDivisorNote)}};
}

// What precision.loss_scale and precision.loss_scale_step get of the option.
std::pair<json, json> scaler_options(const Recipe& recipe) {
  json rest = json::parse(recipe.loss_scale), first{{"output", kLoss}};
  for (const char* key : {"preset", "config", "state", "init_scale"})
    if (rest.contains(key)) first[key] = rest[key];
  rest.erase("init_scale");
  return {first, rest};
}

// Scales the loss. A scaler that goes on from a state of its own library has numbers to begin with.
Status scale_loss(const Recipe& recipe,
                  tn_graph* graph,
                  const json& options,
                  const Cancel& cancel,
                  Weights* initial) {
  std::string report;
  TN_CHECK(apply_pass(recipe.ctx, graph, {"precision.loss_scale", options.dump()}, cancel, &report)
               .in("option loss_scale"));
  const json begin = json::parse(report).value("initial", json::object());
  for (const auto& [name, count] : begin.items()) {
    const int32_t number = count;
    TN_TRY(tensor, Tensor::of<int32_t>(recipe.ctx, TN_I32, {}, std::span(&number, 1)));
    (*initial)[name] = tensor;
  }
  return {};
}

// A graph with an interface as it is, and float64 inside where the recipe is so.
Status widen(const Recipe& recipe, tn_graph* graph, const Cancel& cancel) {
  if (!recipe.is_double) return {};
  return apply_pass(recipe.ctx, graph, {"precision.widen", R"({"to": "float64"})"}, cancel);
}

// Forward to update, on a graph that ends in the loss.
Status add_passes(const Recipe& recipe,
                  tn_graph* graph,
                  uint64_t batch,
                  const std::vector<std::string>& wrt,
                  const Cancel& cancel,
                  StepGraph* out) {
  auto apply = [&](std::string_view id, const json& options) {
    return apply_pass(recipe.ctx, graph, {std::string(id), options.dump()}, cancel);
  };
  bool scaled = recipe.precision == "fp16" && recipe.level != "O3";
  if (recipe.precision == "bf16" || recipe.precision == "fp16") {
    std::string dtype = recipe.precision == "fp16" ? "float16" : "bfloat16";
    TN_CHECK(apply("precision.autocast",
                   {{"device", recipe.device}, {"dtype", dtype}, {"level", recipe.level}}));
  }
  auto [scale, scale_step] = scaler_options(recipe);
  Weights first;  // numbers of the scaler
  if (scaled) TN_CHECK(scale_loss(recipe, graph, scale, cancel, &first));
  TN_CHECK(apply("autodiff.value_and_grad",
                 {{"wrt", wrt}, {"output", scaled ? "scaled_loss" : kLoss}, {"has_aux", scaled}}));
  TN_TRY(left, drop_zero_gradients(graph));
  if (left == 0) return invalid("the loss depends on no parameter of the model");
  if (recipe.precision == "fp8")  // before passes that compute again what it has rounded
    TN_CHECK(apply("precision.fp8", json::parse(recipe.fp8)).in("option fp8"));
  for (const PassChoice& pass : recipe.joint)
    TN_CHECK(apply_pass(recipe.ctx, graph, for_plan(recipe, pass), cancel,
                        &out->joint_reports.emplace_back())
                 .in("option joint"));
  if (recipe.accumulates) TN_CHECK(apply("trainer.accumulate", weight_of(graph, batch)));
  if (scaled) TN_CHECK(apply("precision.unscale", json::object()));
  if (recipe.reports_gradients) TN_CHECK(apply("precision.gradient_histogram", json::object()));
  if (recipe.clip_norm > 0 || recipe.clip_value > 0)
    TN_CHECK(apply("trainer.clip", {{"norm", recipe.clip_norm}, {"value", recipe.clip_value}}));
  TN_CHECK(apply_update(recipe, graph, cancel));
  if (recipe.average > 0)
    TN_CHECK(apply("trainer.average",
                   {{"decay", recipe.average}, {"parameters", states_among({graph}, wrt)}}));
  if (scaled) TN_CHECK(apply("precision.loss_scale_step", scale_step).in("option loss_scale"));
  for (const auto& [name, number] : first)
    if (Graph{graph}.find(name)) out->initial[name] = number;  // no hysteresis, no count of it
  if (recipe.level == "O3")
    TN_CHECK(apply("precision.round_weights", {{"parameters", states_among({graph}, wrt)}}));
  if (recipe.accumulates) TN_CHECK(apply("trainer.accumulate_step", json::object()));
  return {};
}

// Gives the names of the model's constants that became states.
Result<std::vector<std::string>> add_training_passes(const Recipe& recipe,
                                                     tn_graph* graph,
                                                     const Cancel& cancel) {
  std::vector<std::string> names;
  if (recipe.train_as.empty()) return names;
  TN_TRY(edit, Edit::begin(graph));
  TN_CHECK(
      edit.set_note(0, kEpochStepsNote, any_int(static_cast<int64_t>(recipe.steps_per_epoch))));
  TN_CHECK(edit.commit());
  for (const PassChoice& pass : recipe.train_as)
    TN_CHECK(apply_pass(recipe.ctx, graph, pass, cancel).in("option train_as"));
  for (Value state : Graph{graph}.list(TN_LIST_STATES)) {
    Value constant = Graph{recipe.model}.find(state.name());
    if (constant && constant.is_constant()) names.emplace_back(state.name());
  }
  return names;
}

// Gives the values that the output first_nan counts.
Result<std::vector<std::string>> watch_for_nan(const Recipe& recipe,
                                               tn_graph* graph,
                                               const Cancel& cancel) {
  std::string report;
  TN_CHECK(apply_pass(recipe.ctx, graph, {"autodiff.first_nan", "{}"}, cancel, &report));
  return json::parse(report).value("values", std::vector<std::string>{});
}

// Leaves a set of layers out; the seed is that of the draws.
Result<LayerDraws> drop_layers(const Recipe& recipe,
                               tn_graph* graph,
                               uint64_t set,
                               const Cancel& cancel) {
  json options = json::parse(recipe.drop_layers);
  options.erase("seed");
  options["set"] = set;
  std::string report;
  TN_CHECK(apply_pass(recipe.ctx, graph, {"trainer.drop_layers", options.dump()}, cancel, &report)
               .in("option drop_layers"));
  return LayerDraws::from(report);
}

}  // namespace

Type Field::type_for(StepSizes sizes) const {
  Type type(dtype, sample);
  if (is_shortened && sizes.length > 0) type.dims[0] = static_cast<int64_t>(sizes.length);
  type.dims.insert(type.dims.begin(), static_cast<int64_t>(sizes.batch));
  return type;
}

Status apply_pass(tn_ctx* ctx,
                  tn_graph* graph,
                  const PassChoice& pass,
                  const Cancel& cancel,
                  std::string* report) {
  return run_pass(ctx, graph, pass.id, pass.options, cancel.raw(), report);
}

Result<StepGraph> make_step(const Recipe& recipe, StepSizes sizes, const Cancel& cancel) {
  StepGraph out;
  TN_TRY(graph, bound(recipe, sizes));
  size_t n_outputs = graph.view().outputs().size();  // states add their own behind them
  TN_TRY(statistics, add_training_passes(recipe, graph.get(), cancel));
  TN_CHECK(widen(recipe, graph.get(), cancel));
  Weights constants = named_constants(graph.view());
  TN_TRY(mode, Edit::begin(graph.get()));
  TN_TRY(running, to_training_mode(mode, recipe.mode));
  statistics.insert(statistics.end(), running.begin(), running.end());
  TN_CHECK(mode.commit());
  if (!recipe.drop_layers.empty()) {
    TN_TRY(layers, drop_layers(recipe, graph.get(), sizes.layer_set, cancel));
    out.layers = std::move(layers);
  }
  TN_TRY(edit, Edit::begin(graph.get()));
  std::vector<Value> predictions = edit.graph().outputs();
  predictions.resize(n_outputs);
  std::vector<Type> types;
  for (const Field& target : recipe.targets)
    types.push_back(target.type_for(sizes));
  TN_TRY(more, add_loss(edit, recipe, recipe.targets, types, predictions, &out.targets));
  for (size_t i = n_outputs; i-- > 0;)
    TN_CHECK(services.edit->remove_output(edit.raw, i));
  TN_CHECK(edit.commit());
  TN_CHECK(widen(recipe, graph.get(), cancel));  // what the loss has added
  for (const std::string& name : more)
    out.initial[name] = graph.view().find(name).constant();
  std::vector<std::string> wrt = recipe.parameters;
  wrt.insert(wrt.end(), more.begin(), more.end());
  if (sizes.layer_set > 0)  // what a layer that is left out has is not there
    std::erase_if(wrt, [&](const std::string& name) { return !graph.view().find(name); });
  TN_CHECK(drive(graph.get(), recipe.driven, true));
  TN_CHECK(add_passes(recipe, graph.get(), sizes.batch, wrt, cancel, &out));
  // A layer that is left out takes its numbers along.
  TN_CHECK(drive(graph.get(), recipe.driven, sizes.layer_set > 0).in("option schedules"));
  out.numbers = inputs_behind(graph.view(), recipe.inputs.size() + recipe.targets.size());
  out.weights = statistics;
  for (const std::string& name : recipe.parameters)
    if (Value v = graph.view().find(name); v && !v.is_constant()) out.weights.push_back(name);
  for (const std::string& name : out.weights) {
    auto wide = constants.find(name);
    bool is_wide = recipe.is_double && wide != constants.end();
    out.initial[name] = is_wide ? wide->second : Graph{recipe.model}.find(name).constant();
  }
  if (recipe.average > 0)  // it begins with the weights themselves
    for (const std::string& name : wrt)
      if (auto first = out.initial.find(name); first != out.initial.end())
        out.initial[average_of(name)] = first->second;
  if (recipe.check_nan) {
    TN_TRY(watched, watch_for_nan(recipe, graph.get(), cancel));
    out.watched = watched;
    out.first_nan = result_named(graph.view(), "first_nan");
  }
  TN_TRY(shares, Edit::begin(graph.get()));
  TN_CHECK(show_shares(shares));
  TN_CHECK(shares.commit());
  out.loss = result_named(graph.view(), kLoss);
  out.share = result_named(graph.view(), kShareNote);
  out.divisor = result_named(graph.view(), kDivisorNote);
  out.histogram = result_named(graph.view(), "gradient_histogram");
  out.found_inf = result_named(graph.view(), "found_inf");
  out.graph = std::move(graph);
  return out;
}

Result<OwnedGraph> make_evaluation(const Recipe& recipe,
                                   const tn_graph* model,
                                   const std::vector<Field>& targets) {
  TN_TRY(graph, OwnedGraph::copy_of(model));
  TN_TRY(edit, Edit::begin(graph.get()));
  Type first = edit.graph().inputs()[0].type();
  std::vector<Type> types;
  for (const Field& target : targets) {
    Type type = target.type_for({.batch = 1});
    type.dims[0] = first.dims.empty() ? -1 : first.dims[0];
    if (!first.symbols.empty()) {
      type.symbols.resize(type.rank());
      type.symbols[0] = first.symbols[0];
    }
    types.push_back(type);
  }
  TN_TRY(unused, add_loss(edit, recipe, targets, types, edit.graph().outputs(), nullptr));
  (void)unused;
  TN_CHECK(show_shares(edit));
  TN_CHECK(edit.commit());
  return std::move(graph);
}

}  // namespace tenon::trainer
