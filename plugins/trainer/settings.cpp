// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace tenon::trainer {
namespace {

using nlohmann::json;

// A component, or text: an id, its last word, or (for data sets) a file.
Result<Component> component_of(tn_ctx* ctx,
                               const Options& options,
                               std::string_view key,
                               std::string_view role,
                               std::string_view prefix) {
  std::string text = options.text(key);
  if (text.empty() || text.find_first_of("./") != std::string::npos)
    return component_option(ctx, options, key, role);
  Result<Component> made = Component::create(ctx, role, cat(prefix, ".", text));
  if (!made.ok()) return std::move(made).status().in(cat("option ", key));
  return made;
}

// Ids, or an object of options by id.
Result<std::vector<PassChoice>> passes_of(const Options& options, std::string_view key) {
  std::vector<PassChoice> out;
  for (const std::string& text : options.texts(key)) {
    if (!text.starts_with('{')) {
      out.push_back({text});
      continue;
    }
    auto passes = nlohmann::ordered_json::parse(text);
    for (const auto& [id, given] : passes.items()) {
      if (!given.is_object())
        return invalid(
            cat("option ", key, ": ", id, ": expected an object of options, got ", given.dump()));
      out.push_back({id, given.dump()});
    }
  }
  return out;
}

// What the backend's schema says; null where there is none of this id.
json backend_named(tn_ctx* ctx, std::string_view id) {
  StringSink text;
  Status listed(services.component->list(ctx, str("tenon.backend/1"), text.get()));
  json all = json::parse(text.text, nullptr, false);
  for (const json& one : all.is_array() ? all : json::array())
    if (one.value("id", "") == id) return one;
  return nullptr;
}

Status read_components(tn_ctx* ctx, const Options& options, Settings& out) {
  TN_TRY(data, component_of(ctx, options, "data", "tenon.dataset/1", "datasets"));
  TN_TRY(loss, component_of(ctx, options, "loss", "tenon.loss/1", "trainer"));
  TN_TRY(optimizer, component_of(ctx, options, "optimizer", "tenon.optimizer/1", "trainer"));
  out.data = std::move(data);
  out.loss = std::move(loss);
  out.optimizer = std::move(optimizer);
  tn_any rate = options.get("rate"), validation = options.get("validation");
  if (rate.tag == TN_ANY_F64 || rate.tag == TN_ANY_I64) {
    out.rate = float_of(rate, 0);
  } else {
    TN_TRY(schedule, component_of(ctx, options, "rate", "tenon.schedule/1", "scheduler"));
    out.schedule = std::move(schedule);
  }
  out.rate_batch = static_cast<uint64_t>(options.integer("rate_batch"));
  if (validation.tag == TN_ANY_F64 || validation.tag == TN_ANY_I64) {
    out.validation_share = float_of(validation, 0);
    if (!(out.validation_share > 0 && out.validation_share < 1))
      return invalid(cat("option validation: expected a share between 0 and 1, or a data set, got ",
                         out.validation_share));
  } else {
    TN_TRY(held_out, component_of(ctx, options, "validation", "tenon.dataset/1", "datasets"));
    out.validation = std::move(held_out);
  }
  return {};
}

// Behind read_components, which knows what to validate on.
Status read_validation(const Options& options, Settings& out) {
  out.metric = {options.text("metric"), options.text("metric_options", "{}")};
  if (!out.metric.id.empty() && out.metric.id.find('.') == std::string::npos)
    out.metric.id = "metrics." + out.metric.id;
  TN_TRY(validate_as, passes_of(options, "validate_as"));
  out.validate_as = std::move(validate_as);
  out.patience = static_cast<uint64_t>(options.integer("patience"));
  out.min_delta = options.number("min_delta");
  out.restore_best = options.flag("restore_best");
  bool validates = out.validation || out.validation_share > 0;
  if (out.patience > 0 && !validates)
    return invalid("option patience: expected option validation with it");
  if (!out.metric.id.empty() && !validates)
    return invalid("option metric: expected option validation with it");
  if (!out.validate_as.empty() && !validates)
    return invalid("option validate_as: expected option validation with it");
  return {};
}

// {"weight_decay": {"schedule": "cosine", "base": 0.1, ...}}
Status read_driven(tn_ctx* ctx, const Options& options, Settings& out) {
  out.driven_text = options.text("schedules");
  if (out.driven_text.empty()) return {};
  json given = json::parse(out.driven_text, nullptr, false);
  for (auto& [name, one] : given.items()) {
    if (!one.is_object() || !one.contains("schedule") || !one["schedule"].is_string())
      return invalid(cat("option schedules: ", name, ": expected an object with schedule, the id ",
                         "of one, and its options, got ", one.dump()));
    std::string id = one["schedule"];
    if (id.find('.') == std::string::npos) id = cat("scheduler.", id);
    one.erase("schedule");
    Result<Component> made = Component::create(ctx, "tenon.schedule/1", id, one.dump());
    if (!made.ok()) return std::move(made).status().in(cat("option schedules: ", name));
    out.driven.push_back({name, std::move(*made)});
  }
  return {};
}

// The options of ReduceLROnPlateau, and of: "validation" or "loss".
Status read_plateau(const Options& options, Settings& out) {
  out.plateau_text = options.text("plateau");
  if (out.plateau_text.empty()) return {};
  Plateau made;
  bool validates = out.validation || out.validation_share > 0;
  std::string of = validates ? "validation" : "loss";
  json given = json::parse(out.plateau_text, nullptr, false);
  auto number = [](const json& value, auto& to, double least, double most) {
    if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most))
      return false;
    to = value.get<std::decay_t<decltype(to)>>();
    return true;
  };
  constexpr double kMany = 1e15;
  for (const auto& [key, value] : given.items()) {
    bool good = false;
    if (key == "factor")
      good = number(value, made.factor, 0, 1) && made.factor < 1;
    else if (key == "patience")
      good = number(value, made.patience, 0, kMany);
    else if (key == "threshold")
      good = number(value, made.threshold, 0, 1);
    else if (key == "cooldown")
      good = number(value, made.cooldown, 0, kMany);
    else if (key == "lowest")
      good = number(value, made.lowest, 0, kMany);
    else if (key == "of")
      good = value == "validation" || value == "loss";
    else
      return invalid(cat("option plateau: expected factor, patience, threshold, cooldown, lowest, ",
                         "of, got '", key, "'"));
    if (!good)
      return invalid(cat("option plateau: ", key, ": expected ",
                         key == "factor" ? "a number below 1"
                         : key == "of"   ? "validation or loss"
                                         : "a number of at least 0",
                         ", got ", value.dump()));
    if (key == "of") of = value;
  }
  if (of == "validation" && !validates)
    return invalid("option plateau: of: expected option validation with it");
  made.by_training = of == "loss";
  out.plateau = made;
  return {};
}

Status read_run(const Options& options, Settings& out) {
  out.run = options.text("run");
  out.resume = options.flag("resume");
  out.checkpoint_steps = static_cast<uint64_t>(options.integer("checkpoint_steps"));
  for (int64_t step : ints_of(options.get("keep_steps")))
    out.keep_steps.push_back(static_cast<uint64_t>(step));
  out.rewind = options.text("rewind");
  if (!out.run.empty()) return {};
  if (out.resume) return invalid("option resume: expected option run, the folder of the run");
  if (!out.keep_steps.empty())
    return invalid("option keep_steps: expected option run, the folder of the run");
  return {};
}

}  // namespace

Result<Settings> Settings::from(tn_ctx* ctx, const Options& options) {
  Settings out;
  TN_CHECK(read_components(ctx, options, out));
  TN_TRY(callbacks, Callbacks::from(ctx, options, "callbacks"));
  out.callbacks = std::move(callbacks);
  out.targets = options.texts("target");
  out.epochs = static_cast<uint64_t>(options.integer("epochs"));
  out.seed = static_cast<uint64_t>(options.integer("seed"));
  if (options.has("batch")) out.batch = static_cast<uint64_t>(options.integer("batch"));
  out.shuffle = options.flag("shuffle");
  out.drop_last = options.flag("drop_last");
  out.clip_norm = options.number("clip_norm");
  out.clip_value = options.number("clip_value");
  out.accumulate = static_cast<uint64_t>(options.integer("accumulate"));
  out.average = options.number("average");
  out.check_nan = options.flag("check_nan");
  out.groups = options.text("groups");
  out.parameters = {options.texts("parameters"), options.texts("frozen")};
  out.batch_statistics = options.text("batch_norm") == "train";
  out.precision = options.text("precision");
  out.backends = options.texts("backend");
  out.threads = options.integer("threads");
  TN_TRY(train_as, passes_of(options, "train_as"));
  out.train_as = std::move(train_as);
  TN_CHECK(read_validation(options, out));
  TN_CHECK(read_plateau(options, out));
  TN_CHECK(read_driven(ctx, options, out));
  TN_CHECK(read_run(options, out));
  return out;
}

bool Settings::is_computed_by(tn_ctx* ctx, std::string_view id) const {
  json backend = backend_named(ctx, id);
  const json::json_pointer known("/schema/properties/precision/enum");
  if (!backend.is_object() || !backend.contains(known)) return false;
  const json& words = backend[known];
  return std::find(words.begin(), words.end(), precision) != words.end();
}

std::string Settings::plan_options(bool in_precision) const {
  json options = json::object();
  if (!backends.empty()) options["backend"] = backends;
  if (threads > 0) options["threads"] = threads;
  if (in_precision && precision != "fp32") options["precision"] = precision;
  return options.dump();
}

}  // namespace tenon::trainer
