// SPDX-License-Identifier: Apache-2.0
// The end of an epoch: validation, the record, and what is said of it.
#include <algorithm>
#include <cmath>

#include "loop.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;

std::string duration_text(double seconds) {
  auto whole = static_cast<int64_t>(seconds + 0.5);
  char text[32];
  std::snprintf(text, sizeof text, "%lld:%02lld", static_cast<long long>(whole / 60),
                static_cast<long long>(whole % 60));
  return text;
}

}  // namespace

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, std::abs(value) < 1000 ? "%.4g" : "%.0f", value);
  return text;
}

Status Loop::end_epoch(const Cancel& cancel) {
  TN_CHECK(check_weights());
  Position before = position_;
  double seconds = seconds_since(epoch_began_);
  json record{{"epoch", position_.epoch + 1},
              {"steps", position_.steps},
              {"loss", position_.loss.value()},
              {"rate", rate_}};
  if (recipe_.precision == "fp16") record["skipped"] = windows_done() - position_.updates;
  TN_TRY(scale, loss_scale());
  if (scale) record["loss_scale"] = *scale;
  if (gradients_) gradients_->add_to(record);
  add_curriculum(record);
  TN_CHECK(average_epoch());
  if (n_averaged_ > 0) record["averaged"] = n_averaged_;
  TN_CHECK(judge(cancel, record));
  measure(record);
  record["seconds"] = seconds;
  record["samples_per_second"] =
      static_cast<double>(position_.samples - epoch_samples_before_) / std::max(seconds, 1e-9);
  if (Status notified = notify_epoch(cancel, record); !notified.ok()) {
    position_ = std::move(before);  // a run that goes on ends this epoch again
    return notified;
  }
  position_.epoch += 1;
  position_.batch = position_.samples = position_.sequence_steps = 0;
  position_.loss = {};
  log_epoch(record);
  if (gradients_) log_line(ctx_, TN_LOG_INFO, gradients_->advice());
  TN_CHECK(folder_.add_record(record));  // before the checkpoint that counts it
  history_.push_back(std::move(record));
  TN_CHECK(save());
  return keep_epoch();
}

// A run that was stopped between this and its checkpoint does not count an epoch twice.
Status Loop::average_epoch() {
  uint64_t wanted = given_.swa.count_at(position_.epoch + 1);
  if (wanted <= n_averaged_) return {};
  TN_TRY(now, stepper_->states(recipe_.parameters));
  TN_TRY(mean, averaged(ctx_, average_, now, n_averaged_));
  average_ = std::move(mean);
  n_averaged_ += 1;
  return {};
}

// Of the epoch's last batch; and how many steps of sequences were seen in all of it.
void Loop::add_curriculum(json& record) const {
  uint64_t begin = batches_per_epoch() * position_.epoch;
  uint64_t last = begin + std::max<uint64_t>(position_.batch, 1) - 1;
  if (curriculum_.has_shares()) record["sample_share"] = curriculum_.share(update_of(last));
  if (!curriculum_.has_lengths()) return;
  if (given_.length) record["sequence_length"] = curriculum_.length(update_of(last));
  record["sequence_steps"] = position_.sequence_steps;
}

// The scaler's, where there is one.
Result<std::optional<double>> Loop::loss_scale() const {
  std::optional<double> out;
  if (recipe_.precision != "fp16" || recipe_.level == "O3") return out;
  TN_TRY(states, stepper_->states({"loss_scale/scale"}));
  out = *data_of<const float>(states.begin()->second.dl());
  return out;
}

// What overflows from the first step on began too high.
Status Loop::warn_of_scale() const {
  TN_TRY(found, loss_scale());
  double scale = found.value_or(0);
  log_line(ctx_, TN_LOG_WARNING,
           cat("the first ", skipped_in_a_row_, " updates overflowed and were skipped: the loss ",
               "scale began too high and is ", short_number(scale),
               " now; option loss_scale = {init_scale = ", short_number(scale),
               "} begins there, gradient_histogram shows what fits"));
  return {};
}

void Loop::log_epoch(const json& record) const {
  std::string line = cat("epoch ", position_.epoch, " of ", given_.epochs);
  for (const auto& [key, value] : record.items())
    if (value.is_number_float() && key != "rate" && key != "seconds" && key != "samples_per_second")
      line += cat(", ", key, " ", short_number(value));
  double left = seconds_since(epoch_began_) * static_cast<double>(given_.epochs - position_.epoch);
  log_line(ctx_, TN_LOG_INFO,
           cat(line, ", ", short_number(record["samples_per_second"]), " samples/s, ",
               !position_.stopped_by.empty() ? cat("stopped by ", position_.stopped_by)
               : position_.stopped_early     ? std::string("stopped early")
                                             : cat(duration_text(left), " left")));
}

// For the numbers that follow measured values.
void Loop::measure(const json& record) {
  auto see = [&](const Driven& one, std::string_view name) {
    if (!one.plateau && !one.follow) return;
    Measured& seen = position_.measured[std::string(name)];
    if (one.follow) seen.share = one.follow->see(record[one.follow->value], seen.share);
    if (!one.plateau) return;
    if (one.plateau->by_training)
      one.plateau->see(record["loss"], false, seen.plateau);
    else
      one.plateau->see(record[judged_by()], higher_is_better_, seen.plateau);
  };
  see(given_.rate_rules, kRate);
  for (const Driven& one : given_.driven)
    see(one, one.name);
}

// What an epoch's record calls the value of its validation.
std::string Loop::judged_by() const {
  const std::string& id = given_.metric.id;
  return id.empty() ? "validation_loss" : id.substr(id.rfind('.') + 1);
}

// Validation, and whether it gets any better.
Status Loop::judge(const Cancel& cancel, json& record) {
  if (!validation_.feed) return {};
  TN_TRY(model, trained(free_.get(), cancel));
  const bool keeps_best = given_.patience > 0 && given_.restore_best;
  Weights validated;
  if (keeps_best) {
    TN_TRY(now, weights_of({model.get()}));
    validated = std::move(now);
  }
  for (const PassChoice& pass : given_.validate_as)
    TN_CHECK(apply_pass(ctx_, model.get(), pass, cancel).in("option validate_as"));
  TN_TRY(score, validate(recipe_, model.get(), validation_, cancel));
  record["validation_loss"] = score.loss;
  if (score.metric) {
    record[judged_by()] = *score.metric;
  }
  double value = score.metric ? *score.metric : score.loss;
  higher_is_better_ = score.higher_is_better;
  double gain = score.higher_is_better ? value - position_.best : position_.best - value;
  bool better = std::isfinite(value) && (!position_.has_best || gain > given_.min_delta);
  position_.bad_epochs = better ? 0 : position_.bad_epochs + 1;
  if (better) {
    position_.has_best = true;
    position_.best = value;
    position_.best_epoch = position_.epoch + 1;
    if (keeps_best) best_ = std::move(validated);
  }
  position_.stopped_early = given_.patience > 0 && position_.bad_epochs >= given_.patience;
  return {};
}

}  // namespace tenon::trainer
