// SPDX-License-Identifier: Apache-2.0
// Where the loop begins: what its run is of, and how far an earlier part of it came.
#include <algorithm>
#include <set>

#include "loop.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;

// A weight whose zeros were other numbers then, with no mask in the graph that holds them at zero.
std::string lost_zeros(Graph model, const Weights& earlier) {
  for (const auto& [name, tensor] : earlier) {
    Value weight = model.find(name);
    if (!weight || !weight.is_constant() || weight.dtype() != TN_F32) continue;
    if (weight.type().rank() < 2 || weight.consumer_count() == 0 || weight.consumer(0).is("Mul"))
      continue;
    DLTensor now = weight.constant().dl(), then = tensor.dl();
    if (element_count(now) != element_count(then)) continue;
    const float *a = data_of<const float>(now), *b = data_of<const float>(then);
    for (int64_t i = 0; i < element_count(now); ++i)
      if (a[i] == 0 && b[i] != 0) return name;
  }
  return "";
}

// Targets with what the loss says of those that are trained on. Where these are shares of classes,
// as mixed samples have, others may be the classes themselves.
std::vector<Field> checked_as(std::vector<Field> targets, const std::vector<Field>& trained) {
  for (size_t i = 0; i < targets.size(); ++i) {
    targets[i].classes = trained[i].classes;
    targets[i].ignored = trained[i].ignored;
    if (is_float(trained[i].dtype) && !is_float(targets[i].dtype) && !trained[i].sample.empty())
      targets[i].classes = trained[i].sample.front();
  }
  return targets;
}

}  // namespace

Identity Loop::choices() const {
  std::set<std::string> parameters(recipe_.parameters.begin(), recipe_.parameters.end());
  json train_as = json::array();
  for (const PassChoice& pass : given_.train_as)
    train_as.push_back({pass.id, json::parse(pass.options)});
  json choices{{kBatch, batch_},
               {"seed", given_.seed},
               {"shuffle", given_.shuffle},
               {"drop_last", given_.drop_last},
               {"samples", samples_.size()},
               {"loss", given_.loss.id()},
               {"optimizer", given_.optimizer.id()},
               {"groups", given_.groups},
               {"clip_norm", given_.clip_norm},
               {"precision", given_.precision},
               {"parameters", parameters},
               {"batch_norm", given_.batch_statistics ? "train" : "frozen"},
               {"metric", given_.metric.id}};
  if (given_.level != "O1") choices["level"] = given_.level;
  if (given_.loss_scale != "{}") choices["loss_scale"] = given_.loss_scale;
  if (given_.fp8 != "{}") choices["fp8"] = given_.fp8;
  if (!given_.drop_layers.empty()) choices["drop_layers"] = given_.drop_layers;
  if (!given_.joint.empty())
    for (const PassChoice& pass : given_.joint)
      choices["joint"].push_back({pass.id, json::parse(pass.options)});
  if (!train_as.empty()) choices["train_as"] = train_as;
  if (!given_.driven_text.empty()) choices["schedules"] = given_.driven_text;
  if (!given_.plateau_text.empty()) choices["plateau"] = given_.plateau_text;
  if (!given_.curriculum.text.empty()) choices["curriculum"] = json::parse(given_.curriculum.text);
  if (!given_.swa.text.empty()) choices["swa"] = json::parse(given_.swa.text);
  if (given_.accumulate > 1) choices["accumulate"] = given_.accumulate;
  if (given_.backend_options != "{}")
    choices["backend_options"] = json::parse(given_.backend_options);
  return {structure_hash(Graph{model_}), choices, {}, {}};
}

// Without what only looks for NaN: a run goes on with that from before the first one.
Result<StepContents> Loop::contents_of_step(uint64_t batch, const Cancel& cancel) {
  uint64_t n = std::min<uint64_t>(batch, samples_.size());  // one that each epoch has
  StepSizes sizes{n, curriculum_.length(0)};
  if (!given_.check_nan && batch == batch_) {
    TN_CHECK(stepper_->use(sizes, cancel));
    return StepContents::of(stepper_->graph().graph.view());
  }
  recipe_.check_nan = false;
  recipe_.steps_per_epoch = batches_of(samples_.size(), batch);
  TN_CHECK(set_up_joint(batch, cancel));
  Result<StepGraph> plain = make_step(recipe_, sizes, cancel);
  recipe_.check_nan = given_.check_nan;
  recipe_.steps_per_epoch = batches_per_epoch();
  TN_CHECK(set_up_joint(batch_, cancel));
  if (!plain.ok()) return std::move(plain).status();
  return StepContents::of(plain->graph.view());
}

// The step and the rates of the run that is saved are those that this one has.
Status Loop::check_identity(const std::optional<RunFolder::Saved>& saved, const Cancel& cancel) {
  uint64_t began = saved ? saved->identity.choices.value(kBatch, batch_) : batch_;
  auto rate = [this](uint64_t batch) {
    return [this, batch](uint64_t at, uint64_t total) { return rate_at(at, total, batch); };
  };
  TN_TRY(step, contents_of_step(began, cancel));
  identity_.step = std::move(step);
  if (saved) {
    TN_CHECK(same_step(saved->identity, identity_).in(folder_.checkpoint_path()));
    TN_CHECK(same_rates(saved->identity, rate(began)).in(folder_.checkpoint_path()));
  }
  if (began != batch_) {
    TN_TRY(now, contents_of_step(batch_, cancel));
    identity_.step = std::move(now);
  }
  TN_TRY(rates, Rates::of(rate(batch_), updates_per_epoch() * given_.epochs));
  identity_.rates = std::move(rates);
  return {};
}

Status Loop::resume(const Cancel& cancel) {
  identity_ = choices();
  TN_TRY(saved, folder_.open(given_.resume, identity_));
  if (saved && takes_decisions_) stepper_->follow(saved->decisions);
  if (folder_.is_kept()) TN_CHECK(check_identity(saved, cancel));
  bool goes_on = saved.has_value();
  if (!goes_on && !given_.rewind.empty()) {
    TN_TRY(earlier, earlier_run());
    saved = std::move(earlier);
  }
  if (saved) {
    position_ = saved->position;
    uint64_t began = saved->identity.choices.value(kBatch, batch_);
    if (goes_on && began != batch_) regroup(began, &position_);
    regrouped_ = position_.regrouped;
  }
  StepSizes first{range_of(next_batch()).count, curriculum_.length(update_of(next_batch()))};
  TN_CHECK(stepper_->use(first, cancel));
  TN_CHECK(leave_idle_parameters());
  feed_->set_targets(stepper_->graph().targets);
  if (held_out_) held_out_->set_targets(checked_as(held_out_->targets(), feed_->targets()));
  if (!saved) return {};
  TN_CHECK(set_states(saved->states).in(goes_on ? folder_.checkpoint_path() : given_.rewind));
  best_ = std::move(saved->best);
  average_ = std::move(saved->average);
  n_averaged_ = position_.averaged;
  rate_ = position_.rate;
  history_ = std::move(saved->history);
  TN_CHECK(folder_.begin_history(history_));
  is_saved_ = goes_on;
  saved_step_ = position_.steps;
  log_line(
      ctx_, TN_LOG_INFO,
      cat("goes on after step ", position_.steps, " of ", goes_on ? given_.run : given_.rewind));
  return {};
}

// What is left of the epoch is cut into batches of the new size. They count as the epoch's last
// ones, and updates as those of a run that had this size all along, so that schedules are as far as
// they were; what overflow left out stays left out.
void Loop::regroup(uint64_t before, Position* at) const {
  auto updates = [&](uint64_t each) {
    uint64_t windows = (each + given_.accumulate - 1) / given_.accumulate;
    return at->epoch * windows + at->batch / given_.accumulate;
  };
  uint64_t skipped = updates(batches_of(samples_.size(), before)) - at->updates;
  uint64_t each = batches_per_epoch();
  at->batch = each - batches_of(samples_.size() - at->samples, batch_);
  at->regrouped = {at->epoch, at->batch, at->samples};
  at->updates = updates(each) - std::min(skipped, updates(each));
  log_line(ctx_, TN_LOG_INFO,
           cat("batches of ", batch_, ", ", before, " before: ", samples_.size() - at->samples,
               " of ", samples_.size(), " samples of epoch ", at->epoch + 1, " are left"));
}

// The run of another model, as this one goes on with it: the model may multiply its weights by
// masks, but batches and their order are those of that run.
Result<RunFolder::Saved> Loop::earlier_run() const {
  TN_TRY(saved, RunFolder::read(ctx_, given_.rewind));
  TN_CHECK(same_options(saved.identity, identity_).in(cat("option rewind: ", given_.rewind)));
  if (std::string name = lost_zeros({model_}, saved.states); !name.empty())
    return invalid(cat("option rewind: ", given_.rewind, ": ", name, " has zeros that were other ",
                       "numbers there and would be so again; prune with apply = nodes, which ",
                       "leaves masks in the graph"));
  saved.best.clear();  // the best of another model
  saved.average.clear();
  saved.position.averaged = 0;
  saved.position.has_best = saved.position.finished = saved.position.stopped_early = false;
  saved.position.bad_epochs = 0;
  saved.position.stopped_by.clear();
  return saved;
}

Status Loop::set_states(const Weights& states) {
  TN_TRY(now, stepper_->states());
  for (const auto& [name, tensor] : now)
    if (!states.contains(name))
      return invalid(cat("no state ", name, ": the run began with another optimizer or loss"));
  for (const auto& [name, tensor] : states)
    if (!now.contains(name))
      return invalid(
          cat("state ", name, " is not of this run, which has another optimizer or loss"));
  return stepper_->set_states(states);
}

}  // namespace tenon::trainer
