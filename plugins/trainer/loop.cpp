// SPDX-License-Identifier: Apache-2.0
#include "loop.hpp"

#include <algorithm>
#include <cmath>

#include "tenon/role/schedule.h"

namespace tenon::trainer {
namespace {

using nlohmann::json;

constexpr double kSecondsBetweenCheckpoints = 60;
constexpr uint64_t kSkippedToWarn = 8;    // at a run's beginning
constexpr uint64_t kSkippedAtMost = 200;  // the scale has become zero by then

// The name of a value that is not a number, or empty.
std::string not_finite(const Weights& states) {
  for (const auto& [name, tensor] : states) {
    if (!has_finite_numbers(tensor.dl())) return name;
  }
  return "";
}

}  // namespace

uint64_t Loop::batches_of(uint64_t samples, uint64_t batch) const {
  bool rest = samples % batch != 0 && !given_.drop_last && !fixed_;
  return samples / batch + rest;
}

bool Loop::ends_window() const {
  uint64_t done = position_.batch + 1;
  return done % given_.accumulate == 0 || done == batches_per_epoch();
}

uint64_t Loop::windows_done() const {
  uint64_t each = given_.accumulate;
  return updates_per_epoch() * position_.epoch + (position_.batch + each - 1) / each;
}

Loop::Range Loop::range_of(uint64_t batch) const {
  uint64_t each = batches_per_epoch(), at = batch % each, begin = at * batch_;
  if (batch / each == regrouped_.epoch && at >= regrouped_.batch)
    begin = regrouped_.samples + (at - regrouped_.batch) * batch_;
  return {begin, std::min<uint64_t>(batch_, samples_.size() - begin)};
}

std::vector<uint64_t> Loop::order_of(uint64_t epoch) const {
  if (!given_.shuffle) return samples_;
  std::vector<uint64_t> order(samples_.size());
  std::vector<uint64_t> places = shuffled(order.size(), given_.seed, epoch + 1);
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = samples_[places[i]];
  return order;
}

// Batches are counted on over the epochs, so that none is waited for at an epoch's beginning. What
// a data set draws at random is a function of the run's seed and the step.
void Loop::prepare_ahead() {
  uint64_t each = batches_per_epoch(), first = next_batch();
  uint64_t seed = given_.seed * 0x9e3779b97f4a7c15u + position_.steps - first;
  auto make = [this, each, seed, epoch = UINT64_MAX, order = std::vector<uint64_t>()](
                  uint64_t batch) mutable -> Result<std::vector<Tensor>> {
    Range range = range_of(batch);
    if (curriculum_.share(update_of(batch)) < 1)
      return batch_of(curriculum_.draw(update_of(batch), range.count, given_.seed, batch), batch,
                      seed);
    if (epoch != batch / each) order = order_of(epoch = batch / each);
    return batch_of({order.data() + range.begin, range.count}, batch, seed);
  };
  // An epoch that is begun is ended, also where fewer epochs are asked for now.
  uint64_t begun = position_.epoch + (position_.batch > 0);
  ahead_.emplace(std::move(make), first, each * std::max(given_.epochs, begun));
}

Result<std::vector<Tensor>> Loop::batch_of(std::span<const uint64_t> samples,
                                           uint64_t batch,
                                           uint64_t seed) {
  TN_TRY(loaded, feed_->load(samples, seed + batch));
  uint64_t length = curriculum_.length(update_of(batch), loaded.all);
  std::vector<Tensor> kept;  // the feed's own memory is that of the next batch
  for (size_t i = 0; i < loaded.all.size(); ++i) {
    size_t n = recipe_.inputs.size();
    const Field& field = i < n ? recipe_.inputs[i] : recipe_.targets[i - n];
    TN_TRY(copy, length > 0 && field.is_shortened ? shortened(ctx_, loaded.all[i], length)
                                                  : Tensor::copy_of(ctx_, loaded.all[i]));
    kept.push_back(copy);
  }
  return kept;
}

StepSizes Loop::sizes_of(const std::vector<Tensor>& batch) const {
  StepSizes out{static_cast<uint64_t>(batch.at(0).dl().shape[0]), 0};
  for (size_t i = 0; i < recipe_.inputs.size(); ++i)
    if (recipe_.inputs[i].is_shortened) out.length = static_cast<uint64_t>(batch[i].dl().shape[1]);
  return out;
}

Status Loop::run(const Cancel& cancel) {
  began_ = saved_at_ = Clock::now();
  TN_CHECK(set_up(cancel));
  if (position_.finished && at_end()) return {};
  position_.finished = false;
  if (!is_saved_) {  // from here on the run can go on, wherever it ends
    TN_CHECK(save());
    TN_CHECK(keep_step());
  }
  uint64_t each = samples_.size();
  Progress progress(ctx_, "train", each * given_.epochs);
  prepare_ahead();
  while (!at_end()) {
    epoch_began_ = Clock::now();
    epoch_samples_before_ = position_.samples;
    gradients_.reset();
    Status done = run_epoch(cancel, progress);
    if (done.ok()) done = end_epoch(cancel);
    if (!done.ok()) return stopped(std::move(done));
    progress.update(each * position_.epoch);
  }
  position_.finished = true;
  return save();
}

// A callback may have ended the run within an epoch, or fewer epochs are asked for than were begun:
// the one that is begun is ended first.
bool Loop::at_end() const {
  bool ended = position_.stopped_early || !position_.stopped_by.empty();
  return position_.batch == 0 && (position_.epoch >= given_.epochs || ended);
}

// A run that was interrupted, or whose callback failed, is saved, so that it can go on.
Status Loop::stopped(Status why) {
  if (why.code() != TN_CANCELLED && !callback_failed_) return why;
  TN_CHECK(save());
  std::string where = cat("stopped after step ", position_.steps, " (epoch ", position_.epoch + 1,
                          "); ", folder_.resume_hint());
  if (callback_failed_) return std::move(why).in(where);
  return {TN_CANCELLED, where};
}

Status Loop::run_epoch(const Cancel& cancel, Progress& progress) {
  while (position_.batch < batches_per_epoch() && position_.stopped_by.empty()) {
    TN_CHECK(cancel.check());
    TN_CHECK(step(cancel));
    TN_CHECK(keep_step());
    progress.update(samples_.size() * position_.epoch + position_.samples);
    uint64_t every = given_.checkpoint_steps;
    bool due = every ? position_.steps % every == 0
                     : seconds_since(saved_at_) > kSecondsBetweenCheckpoints;
    if (due) TN_CHECK(save());
  }
  return {};
}

Result<double> Loop::rate_at(uint64_t step, uint64_t total_steps, uint64_t batch) const {
  double rate = given_.rate;
  if (given_.schedule) {
    Result<double> value = value_at(given_.schedule, step, total_steps);
    if (!value.ok()) return std::move(value).status().in("option rate");
    rate = *value;
  }
  if (given_.swa.rate) {
    double each = static_cast<double>(total_steps) / static_cast<double>(given_.epochs);
    auto begin = static_cast<uint64_t>(each * static_cast<double>(given_.swa.begin));
    double frozen = rate;
    if (given_.schedule && step > begin) {
      Result<double> value = value_at(given_.schedule, begin, total_steps);
      if (!value.ok()) return std::move(value).status().in("option rate");
      frozen = *value;
    }
    rate = given_.swa.rate_at(rate, frozen, static_cast<double>(step) / each);
  }
  if (given_.rate_batch == 0) return rate;
  return rate * static_cast<double>(batch * given_.accumulate) /
         static_cast<double>(given_.rate_batch);
}

Result<StepInputs> Loop::next_inputs() const {
  uint64_t at = position_.updates, total = updates_per_epoch() * given_.epochs;
  StepInputs out;
  const Driven& rules = given_.rate_rules;
  Measured seen = position_.seen(kRate);
  TN_TRY(rate, rules.follow ? rate_at(Follow::step(seen.share), Follow::kSteps, batch_)
                            : rate_at(at, total, batch_));
  out.rate = rules.plateau ? rules.plateau->rate(rate, seen.plateau) : rate;
  out.updates = ends_window();
  for (const Driven& one : given_.driven) {
    Result<double> value = one.value(at, total, position_.seen(one.name));
    if (!value.ok()) return std::move(value).status().in(cat("option schedules: ", one.name));
    out.settings[one.name] = *value;
  }
  return out;
}

// One set for all batches of an update, so that a layer that is left out is so in all of them.
Result<size_t> Loop::draw_layers(const StepInputs& inputs) const {
  auto keep = inputs.settings.find(std::string(kLayerKeep));
  const LayerDraws& layers = stepper_->layers();
  return layers.draw(given_.layer_seed,
                     position_.epoch * updates_per_epoch() + position_.batch / given_.accumulate,
                     keep != inputs.settings.end() ? keep->second : layers.lowest_keep);
}

Status Loop::step(const Cancel& cancel) {
  TN_TRY(inputs, next_inputs());
  TN_TRY(batch, ahead_->next());
  StepSizes sizes = sizes_of(batch);
  TN_TRY(layer_set, draw_layers(inputs));
  sizes.layer_set = layer_set;
  TN_CHECK(stepper_->use(sizes, cancel));
  rate_ = inputs.rate;
  bool updates = inputs.updates;
  std::vector<DLTensor> views;
  for (const Tensor& one : batch)
    views.push_back(one.dl());
  TN_TRY(outcome, stepper_->run(views, inputs));
  uint64_t number = position_.steps + 1;
  if (!outcome.skipped) TN_CHECK(refuse_broken(outcome, number));
  if (updates) skipped_in_a_row_ = outcome.skipped ? skipped_in_a_row_ + 1 : 0;
  if (skipped_in_a_row_ == kSkippedToWarn && position_.updates == 0) TN_CHECK(warn_of_scale());
  if (outcome.gradients && !outcome.skipped) {
    if (!gradients_) gradients_.emplace();
    gradients_->add(*outcome.gradients);
  }
  if (skipped_in_a_row_ > kSkippedAtMost)
    return {TN_OUT_OF_RANGE, cat("step ", number, ": gradients overflow whatever the loss scale")};
  position_.steps = number;
  position_.batch += 1;
  position_.updates += updates && !outcome.skipped;
  position_.samples += sizes.batch;
  position_.sequence_steps += sizes.batch * sizes.length;
  if (std::isfinite(outcome.loss))
    position_.loss.add(outcome.loss, static_cast<double>(sizes.batch), outcome.share,
                       outcome.divisor);
  return given_.callbacks.want_steps() ? notify_step(outcome) : Status();
}

Status Loop::refuse_broken(const Outcome& outcome, uint64_t number) const {
  if (std::isfinite(outcome.loss) && outcome.first_nan.empty()) return {};
  std::string what = std::isfinite(outcome.loss) ? cat("the loss is ", short_number(outcome.loss))
                     : outcome.loss > 0          ? "the loss is infinite"
                                                 : "the loss is not a number";
  if (!outcome.first_nan.empty())
    what += cat(", and the first NaN is in ", outcome.first_nan);
  else if (!given_.check_nan)
    what += ", option check_nan shows where it begins";
  return {TN_OUT_OF_RANGE, cat("step ", number, " (epoch ", position_.epoch + 1, "): ", what, "; ",
                               last_good_checkpoint(), "; a lower rate or clip_norm may help")};
}

Status Loop::refuse_broken(const Weights& states) const {
  std::string name = not_finite(states);
  if (name.empty()) return {};
  return {TN_OUT_OF_RANGE, cat("step ", position_.steps, ": ", name, " is not finite any more",
                               given_.check_nan ? "" : ", option check_nan shows where it begins",
                               "; ", last_good_checkpoint())};
}

// A NaN in weights need not reach the loss: a backend's fused Relu may make 0 of it.
Status Loop::check_weights() const {
  for (const std::string& name : recipe_.parameters) {  // one copy at a time
    TN_TRY(one, stepper_->states({name}));
    TN_CHECK(refuse_broken(one));
  }
  return {};
}

Status Loop::notify_step(const Outcome& outcome) {
  tn_progress_point at{sizeof at,           outcome.skipped, position_.steps,
                       position_.epoch + 1, outcome.loss,    rate_};
  Result<std::string> stopped_by = given_.callbacks.step(at);
  callback_failed_ = !stopped_by.ok();
  if (callback_failed_) return std::move(stopped_by).status();
  position_.stopped_by = *stopped_by;
  return {};
}

Status Loop::notify_epoch(const Cancel& cancel, json& record) {
  if (given_.callbacks.want_epochs()) {
    TN_TRY(model, trained(model_, cancel));
    Result<std::string> stopped_by = given_.callbacks.epoch(record.dump(), model.get());
    callback_failed_ = !stopped_by.ok();
    if (callback_failed_) return std::move(stopped_by).status();
    if (position_.stopped_by.empty()) position_.stopped_by = *stopped_by;
  }
  if (!position_.stopped_by.empty()) record["stopped_by"] = position_.stopped_by;
  return {};
}

Result<RunFolder::Saved> Loop::as_it_is() const {
  TN_TRY(states, stepper_->states());
  TN_CHECK(refuse_broken(states));
  RunFolder::Saved out{identity_, position_, std::move(states), best_, average_};
  out.decisions = stepper_->decisions();
  out.position.averaged = n_averaged_;
  out.position.rate = rate_;
  return Result<RunFolder::Saved>(std::move(out));
}

std::string Loop::last_good_checkpoint() const {
  if (!is_saved_) return "no checkpoint was kept";
  return cat("the last good checkpoint, of step ", saved_step_, ", is ", folder_.checkpoint_path());
}

// Of a step that the run has to keep, for another run to begin at.
Status Loop::keep_step() {
  const std::vector<uint64_t>& steps = given_.keep_steps;
  if (std::find(steps.begin(), steps.end(), position_.steps) == steps.end()) return {};
  TN_TRY(now, as_it_is());
  return folder_.keep(now);
}

// Beside the checkpoint, those of the newest epochs.
Status Loop::keep_epoch() {
  if (given_.keep_last == 0) return {};
  TN_TRY(now, as_it_is());
  return folder_.keep_epoch(now, given_.keep_last);
}

Status Loop::save() {
  saved_at_ = Clock::now();
  if (!folder_.is_kept()) return {};
  TN_TRY(now, as_it_is());
  TN_CHECK(folder_.save(now));
  is_saved_ = true;
  saved_step_ = position_.steps;
  return {};
}

}  // namespace tenon::trainer
