// SPDX-License-Identifier: Apache-2.0
// What the loop needs before its first step.
#include <algorithm>
#include <set>

#include "batch_finder.hpp"
#include "joint_passes.hpp"
#include "loop.hpp"

namespace tenon::trainer {

Status Loop::set_up(const Cancel& cancel) {
  uint64_t fixed = 0;
  TN_TRY(free, with_free_batch(model_, &fixed));
  free_ = std::move(free);
  fixed_ = fixed > 0;
  batch_ = given_.batch.value_or(fixed_ ? fixed : 64);
  if (fixed_ && batch_ != fixed)
    return invalid(cat("option batch: the model is made for batches of ", fixed, ", got ", batch_));
  if (Graph{model_}.inputs().empty()) return invalid("expected a model with an input");
  TN_TRY(probe, Plan::compile(ctx_, free_.view(), {}, given_.plan_options(false)));
  const bool by_backend = given_.is_computed_by(ctx_, probe.backend());
  if (given_.precision == "tf32" && !by_backend)
    return unsupported(
        cat("option precision: tf32 is how products of float32 are computed on CUDA; "
            "backend ",
            probe.backend(), " has no such type: expected fp32, or bf16 for shorter numbers"));
  TN_CHECK(set_up_parameters());
  TN_CHECK(set_up_data());
  TN_CHECK(set_up_recipe(probe.backend(), by_backend));
  stepper_.emplace(recipe_, given_.plan_options(by_backend), given_.step_shapes);
  takes_decisions_ = Settings::has_option(ctx_, probe.backend(), Stepper::kDecisions);
  TN_CHECK(set_up_batch());
  TN_CHECK(fit_batch(cancel));
  TN_CHECK(set_up_curriculum());
  TN_CHECK(set_up_joint(batch_, cancel));
  return resume(cancel);
}

Status Loop::set_up_data() {
  TN_TRY(feed, Feed::make(ctx_, given_.data, free_.view(), given_.targets, recipe_.is_double));
  feed_ = std::move(feed);
  std::vector<uint64_t> all(feed_->size());
  for (uint64_t i = 0; i < all.size(); ++i)
    all[i] = i;
  if (given_.validation) {
    TN_TRY(held_out, Feed::make(ctx_, given_.validation, free_.view(), given_.targets,
                                recipe_.is_double, "validation"));
    held_out_ = std::move(held_out);
    for (uint64_t i = 0; i < held_out_->size(); ++i)
      validation_.samples.push_back(i);
    validation_.feed = &*held_out_;
  } else if (given_.validation_share > 0) {
    if (given_.shuffle) all = shuffled(all.size(), given_.seed, 0);
    auto held = static_cast<uint64_t>(static_cast<double>(all.size()) * given_.validation_share);
    if (held == 0 || held == all.size())
      return invalid(cat("option validation: ", given_.validation_share, " of ", all.size(),
                         " samples leaves one side empty"));
    validation_.samples.assign(all.end() - static_cast<std::ptrdiff_t>(held), all.end());
    all.resize(all.size() - held);
    held_out_ = feed_->another();
    validation_.feed = &*held_out_;
  }
  if (validation_.feed && !given_.metric.id.empty() && validation_.feed->targets().empty())
    return invalid(cat("option metric: ", given_.metric.id, " compares outputs with labels, but ",
                       "the data set has no field beside the model's inputs"));
  samples_ = std::move(all);
  return {};
}

// The batch is known, or a first guess that fits the data.
Status Loop::set_up_batch() {
  if (fixed_) {
    uint64_t whole = validation_.samples.size() / batch_ * batch_;
    if (validation_.feed && whole == 0)
      return invalid(cat("option validation: the model wants ", batch_, " samples at once, got ",
                         validation_.samples.size()));
    validation_.samples.resize(whole);
  }
  const bool is_guess = given_.memory > 0 && !fixed_ && planned_bytes_ == 0;
  if (is_guess) batch_ = std::min<uint64_t>(batch_, samples_.size());
  if (batches_per_epoch() == 0)
    return invalid(cat("option data: expected at least a batch of ", batch_, " samples, got ",
                       samples_.size()));
  if (given_.batch && batch_ > samples_.size())
    log_line(ctx_, TN_LOG_WARNING,
             cat("option batch: ", batch_, " is more than the ", samples_.size(),
                 " samples that are trained on: each step takes all of them"));
  recipe_.steps_per_epoch = batches_per_epoch();
  validation_.batch = batch_;
  validation_.metric = given_.metric;
  validation_.options = given_.plan_options(false);
  return {};
}

Status Loop::fit_batch(const Cancel& cancel) {
  if (given_.memory == 0) return {};
  auto bytes = [&](uint64_t batch) -> Result<uint64_t> {
    TN_CHECK(set_up_joint(batch, cancel));
    Result<uint64_t> planned = stepper_->planned_bytes({.batch = batch}, cancel);
    const bool is_short = !planned.ok() && planned.status().code() == TN_OUT_OF_RANGE;
    // No plan of a small batch may do with the share, as one of a larger batch does.
    if (is_short && set_least_budgets(recipe_, given_.joint))
      return stepper_->planned_bytes({.batch = batch}, cancel);
    return planned;
  };
  FoundBatch found;
  if (fixed_) {
    TN_TRY(asked, bytes(batch_));
    found = {asked <= given_.memory ? batch_ : 0, asked, 1};
  } else {
    TN_TRY(searched, find_batch(given_.memory, samples_.size(), bytes));
    found = searched;
  }
  if (found.batch == 0)
    return invalid(cat("option memory: expected at least ", found.bytes,
                       " bytes, which a batch of ", fixed_ ? batch_ : 1, " takes, got ",
                       given_.memory));
  batch_ = found.batch;
  planned_bytes_ = found.bytes;
  log_line(ctx_, TN_LOG_INFO,
           cat("batches of ", batch_, " fit into ", given_.memory, " bytes: ", found.bytes,
               " are planned"));
  return set_up_batch();
}

Status Loop::set_up_joint(uint64_t batch, const Cancel& cancel) {
  return set_joint(recipe_, given_.joint, {.batch = std::min<uint64_t>(batch, samples_.size())},
                   cancel);
}

Status Loop::set_up_curriculum() {
  uint64_t updates = updates_per_epoch() * given_.epochs;
  auto value_of = [&](const std::optional<Driven>& driven) -> Curriculum::Value {
    if (!driven) return {};
    return [&driven, updates](uint64_t update) -> Result<double> {
      Result<double> value = driven->value(update, updates, {});
      if (!value.ok()) return std::move(value).status().in(cat("option schedules: ", driven->name));
      return value;
    };
  };
  TN_CHECK(curriculum_.set_lengths(given_.curriculum, value_of(given_.length), updates,
                                   recipe_.inputs, recipe_.targets));
  TN_CHECK(curriculum_.set_fit(given_.curriculum, recipe_.inputs, recipe_.targets));
  if (!given_.share) return {};
  Feed scores = feed_->another();
  if (const std::string& field = given_.curriculum.score_field; !field.empty()) {
    TN_TRY(read, Feed::make(ctx_, given_.data, free_.view(), {field}, true, "curriculum"));
    scores = std::move(read);
  }
  return curriculum_.set_shares(given_.curriculum, value_of(given_.share), updates,
                                std::move(scores), samples_);
}

// Which parameters there are, and whether steps are in float64.
Status Loop::set_up_parameters() {
  TN_TRY(parameters, find_parameters(free_.view(), given_.parameters));
  if (const auto kept = weights_of_bodies(free_.view()); !kept.empty())
    log_line(ctx_, TN_LOG_WARNING,
             cat("not trained, as they are constants of bodies of control flow: ", few_of(kept)));
  // A single number that a schedule drives is not trained.
  std::erase_if(parameters, [this](const std::string& name) {
    const bool is_driven = std::ranges::count(given_.driven, name, &Driven::name) > 0;
    return is_driven && free_.view().find(name).type().rank() == 0;
  });
  auto is_double = [this](const std::string& name) {
    return free_.view().find(name).dtype() == TN_F64;
  };
  auto wide = std::ranges::find_if(parameters, is_double);
  const bool is_low =
      given_.precision == "bf16" || given_.precision == "fp16" || given_.precision == "fp8";
  if (is_low && wide != parameters.end())
    return invalid(cat("option precision: ", given_.precision, ": parameter ", *wide,
                       " is float64: expected fp32 or fp64 (steps in float64), or a model in "
                       "float32"));
  recipe_.is_double = given_.precision == "fp64" || std::ranges::all_of(parameters, is_double);
  recipe_.parameters = std::move(parameters);
  return {};
}

// Of the step in use: a loss may read some of the model's outputs alone.
Status Loop::leave_idle_parameters() {
  const std::vector<std::string>& trained = stepper_->graph().weights;
  const std::set<std::string> with_state(trained.begin(), trained.end());
  std::vector<std::string> idle;
  std::erase_if(recipe_.parameters, [&](const std::string& name) {
    if (!with_state.contains(name)) idle.push_back(name);
    return !with_state.contains(name);
  });
  if (idle.empty()) return {};
  const std::string names =
      cat(idle.front(), idle.size() > 1 ? cat(" and ", idle.size() - 1, " more") : "");
  if (recipe_.parameters.empty())
    return invalid(cat("option loss: expected one that depends on some parameter, got one that ",
                       "reads nothing of ", names));
  log_line(ctx_, TN_LOG_WARNING, cat("not trained, as the loss does not depend on it: ", names));
  return {};
}

Status Loop::set_up_recipe(std::string_view backend, bool by_backend) {
  TN_TRY(loss, Component::share(given_.loss.raw(), "tenon.loss/1"));
  TN_TRY(optimizer, Component::share(given_.optimizer.raw(), "tenon.optimizer/1"));
  recipe_.ctx = ctx_;
  recipe_.model = free_.get();
  recipe_.inputs = feed_->inputs();
  recipe_.targets = feed_->targets();
  recipe_.loss = std::move(loss);
  recipe_.optimizer = std::move(optimizer);
  recipe_.groups = given_.groups;
  recipe_.precision = by_backend ? "fp32" : given_.precision;
  recipe_.fp8 = given_.fp8;
  recipe_.level = given_.level;
  recipe_.loss_scale = given_.loss_scale;
  recipe_.drop_layers = given_.drop_layers;
  recipe_.plan_precision = by_backend ? given_.precision : "fp32";
  recipe_.reports_gradients = given_.reports_gradients;
  recipe_.device = backend == "cuda" ? "cuda" : "cpu";
  recipe_.clip_norm = given_.clip_norm;
  recipe_.clip_value = given_.clip_value;
  recipe_.accumulates = given_.accumulate > 1;
  recipe_.average = given_.average;
  for (const Driven& one : given_.driven)
    recipe_.driven.push_back(one.name);
  bool drives_dropout =
      std::find(recipe_.driven.begin(), recipe_.driven.end(), kDropout) != recipe_.driven.end();
  recipe_.mode = {given_.seed, given_.batch_statistics, drives_dropout};
  auto is_norm = [](Node node) { return node.is("BatchNormalization"); };
  if (!given_.batch_statistics && std::ranges::none_of(free_.view().nodes(), is_norm))
    log_line(ctx_, TN_LOG_WARNING,
             "option batch_norm has no effect: the model has no BatchNormalization");
  const auto kept = norms_without_own_statistics(free_.view());
  if (given_.batch_statistics && !kept.empty())
    log_line(ctx_, TN_LOG_WARNING,
             cat("BatchNormalization keeps its running statistics, which other nodes read too or "
                 "compute: ",
                 few_of(kept)));
  recipe_.train_as = given_.train_as;
  recipe_.steps_per_epoch = batches_per_epoch();
  recipe_.check_nan = given_.check_nan;
  return {};
}

}  // namespace tenon::trainer
