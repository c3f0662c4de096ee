// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tenon/sdk/listing.hpp"
#include "tenon/sdk/run.hpp"

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
  if (text.starts_with('{'))
    return invalid(cat(
        "option ", key, ": expected a component, its id or a file, got a table of ", "options",
        role == "tenon.dataset/1" ? ": datasets.arrays makes a data set of arrays by name" : ""));
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
  for (const json& one : listed_components(ctx, "tenon.backend/1"))
    if (one.value("id", "") == id) return one;
  return nullptr;
}

Status read_backend_options(const Options& options, Settings& out) {
  out.backend_options = options.text("backend_options", "{}");
  const json own = json::parse(out.backend_options);
  for (const char* name : {"backend", "precision", "threads"})
    if (own.contains(name))
      return invalid(cat("option backend_options: expected options of the backend's own, got ",
                         name, ", which is an option of the training"));
  return {};
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
  return {};
}

// Whether an epoch's record has such a value.
Status check_measured(const Follow& follow, const Settings& of) {
  std::vector<std::string> known{"loss"};
  if (of.validation || of.validation_share > 0) known.push_back("validation_loss");
  if (!of.metric.id.empty()) known.push_back(of.metric.id.substr(of.metric.id.rfind('.') + 1));
  std::string list;
  for (const std::string& one : known) {
    if (one == follow.value) return {};
    list += cat(list.empty() ? "" : ", ", one);
  }
  return invalid(cat("follow: value: expected a value that is measured here (", list, "), got '",
                     follow.value, "'"));
}

// What changes while it trains; the option plateau is one of learning_rate's rules.
Status read_driven(tn_ctx* ctx, const Options& options, Settings& out) {
  bool validates = out.validation || out.validation_share > 0;
  TN_TRY(driven, driven_option(ctx, options, validates, &out.driven_text));
  for (Driven& one : driven) {
    bool is_rate = one.name == kRate;
    if (one.name == kLength || one.name == kShare) {
      if (one.plateau || one.follow)
        return invalid(cat("option schedules: ", one.name,
                           ": expected a schedule alone, as batches "
                           "are prepared ahead; got plateau or follow"));
      (one.name == kLength ? out.length : out.share) = std::move(one);
      continue;
    }
    if (one.follow)
      TN_CHECK(check_measured(*one.follow, out).in(cat("option schedules: ", one.name)));
    (is_rate ? out.rate_rules : out.driven.emplace_back()) = std::move(one);
  }
  TN_TRY(curriculum, CurriculumChoice::from(options.text("curriculum")));
  out.curriculum = curriculum;
  if (out.share && !curriculum.has_score())
    return invalid(cat("option schedules: ", kShare, ": expected option curriculum with a score"));
  if (!out.share && curriculum.has_score())
    return invalid(cat("option curriculum: score: expected a schedule of ", kShare, " with it"));
  if (!out.length && !curriculum.text.empty() && !curriculum.has_score() &&
      curriculum.fit_field.empty())
    return invalid(
        cat("option curriculum: buckets: expected fit or a schedule of ", kLength, " with it"));
  if (out.rate_rules.schedule) out.schedule = std::move(out.rate_rules.schedule);
  out.plateau_text = options.text("plateau");
  if (out.plateau_text.empty()) return {};
  Result<Plateau> plateau = plateau_of(json::parse(out.plateau_text, nullptr, false), validates);
  if (!plateau.ok()) return std::move(plateau).status().in("option plateau");
  out.rate_rules.plateau = *plateau;
  return {};
}

// O0 to O3 are Apex' names: float32; float16 by operators; float16 but for BatchNormalization, with
// float32 parameters; float16 with parameters of float16, and no loss scale.
Status read_precision(const Options& options, Settings& out) {
  out.precision = options.text("precision");
  if (out.precision.starts_with('O')) {
    out.level = out.precision == "O0" ? "O1" : out.precision;
    out.precision = out.precision == "O0" ? "fp32" : "fp16";
  }
  out.reports_gradients = options.flag("gradient_histogram");
  out.loss_scale = options.text("loss_scale", "{}");
  out.fp8 = options.text("fp8", "{}");
  if (out.precision == "fp8" && options.has("drop_layers"))
    return invalid(
        "option drop_layers: expected another precision than fp8, whose scales are of "
        "tensors that a step without some layers does not have");
  bool is_scaled = out.precision == "fp16" && out.level != "O3";
  if (is_scaled || !options.has("loss_scale")) return {};
  return invalid(
      cat("option loss_scale: expected precision fp16, O1 or O2, got ", options.text("precision")));
}

Status read_run(tn_ctx* ctx, const Options& options, Settings& out) {
  out.run = options.text("run");
  out.resume = options.flag("resume");
  out.checkpoint_steps = static_cast<uint64_t>(options.integer("checkpoint_steps"));
  for (int64_t step : ints_of(options.get("keep_steps")))
    out.keep_steps.push_back(static_cast<uint64_t>(step));
  out.keep_last = static_cast<uint64_t>(options.integer("keep_last"));
  out.shard_bytes = static_cast<uint64_t>(options.integer("shard_bytes"));
  out.rewind = options.text("rewind");
  // A script may set how often, and leave the folder to the command that runs it.
  if (out.run.empty() && (out.checkpoint_steps > 0 || out.shard_bytes > 0))
    log_line(ctx, TN_LOG_INFO, "no checkpoint is written: there is no folder for it (option run)");
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
  out.memory = static_cast<uint64_t>(options.integer("memory"));
  out.step_shapes = static_cast<uint64_t>(options.integer("step_shapes", 8));
  if (out.batch && out.memory > 0)
    return invalid("option memory: expected it without option batch, which it finds");
  out.shuffle = options.flag("shuffle");
  out.drop_last = options.flag("drop_last");
  out.clip_norm = options.number("clip_norm");
  out.clip_value = options.number("clip_value");
  out.accumulate = static_cast<uint64_t>(options.integer("accumulate"));
  out.average = options.number("average");
  TN_TRY(swa, EpochAverage::from(options.text("swa"), out.epochs));
  out.swa = std::move(swa);
  if (out.average > 0 && !out.swa.text.empty())
    return invalid("option swa: expected it without option average, another mean of the weights");
  out.check_nan = options.flag("check_nan");
  out.groups = options.text("groups");
  if (options.has("drop_layers")) {
    json drop = json::parse(options.text("drop_layers"));
    if (!drop.contains("seed")) drop["seed"] = out.seed;
    if (!drop["seed"].is_number_unsigned())
      return invalid("option drop_layers: seed: expected a whole number of at least 0");
    out.layer_seed = drop["seed"];
    out.drop_layers = drop.dump();
  }
  out.parameters = {options.texts("parameters"), options.texts("frozen")};
  out.batch_statistics = options.text("batch_norm") == "train";
  TN_CHECK(read_precision(options, out));
  out.backends = options.texts("backend");
  out.threads = options.integer("threads");
  TN_CHECK(read_backend_options(options, out));
  TN_TRY(joint, passes_of(options, "joint"));
  out.joint = std::move(joint);
  TN_TRY(train_as, passes_of(options, "train_as"));
  out.train_as = std::move(train_as);
  TN_CHECK(read_validation(options, out));
  TN_CHECK(read_driven(ctx, options, out));
  TN_CHECK(read_run(ctx, options, out));
  return out;
}

bool Settings::is_computed_by(tn_ctx* ctx, std::string_view id) const {
  if (level != "O1") return false;
  json backend = backend_named(ctx, id);
  const json::json_pointer known("/schema/properties/precision/enum");
  if (!backend.is_object() || !backend.contains(known)) return false;
  const json& words = backend[known];
  return std::find(words.begin(), words.end(), precision) != words.end();
}

bool Settings::has_option(tn_ctx* ctx, std::string_view backend, std::string_view name) {
  const json found = backend_named(ctx, backend);
  const json::json_pointer options("/schema/properties");
  return found.is_object() && found.contains(options) && found[options].contains(name);
}

std::string Settings::plan_options(bool in_precision) const {
  json options = json::parse(backend_options);
  if (!backends.empty()) options["backend"] = backends;
  if (threads > 0) options["threads"] = threads;
  if (in_precision && precision != "fp32") options["precision"] = precision;
  return options.dump();
}

}  // namespace tenon::trainer
