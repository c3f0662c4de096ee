// SPDX-License-Identifier: Apache-2.0
#include "position.hpp"

namespace tenon::trainer {
namespace {

// One list of the members for both directions.
template <class Self, class Visit>
void members(Self& p, Visit&& visit) {
  visit("epoch", p.epoch);
  visit("batch", p.batch);
  visit("steps", p.steps);
  visit("updates", p.updates);
  visit("loss_sum", p.loss.sum);
  visit("samples", p.samples);
  visit("has_best", p.has_best);
  visit("best", p.best);
  visit("best_epoch", p.best_epoch);
  visit("bad_epochs", p.bad_epochs);
  visit("finished", p.finished);
  visit("stopped_early", p.stopped_early);
  visit("stopped_by", p.stopped_by);
}

template <class Self, class Visit>
void members_of_plateau(Self& p, Visit&& visit) {
  visit("has_best", p.has_best);
  visit("best", p.best);
  visit("bad", p.bad);
  visit("cooling", p.cooling);
  visit("factor", p.factor);
}

constexpr const char *kPlateau = "plateau", *kMeasured = "measured", *kShare = "share",
                     *kSequenceSteps = "sequence_steps", *kRegrouped = "regrouped",
                     *kAveraged = "averaged", *kLastRate = "rate", *kLossWeight = "loss_weight";

}  // namespace

nlohmann::json Position::to_json() const {
  nlohmann::json out;
  members(*this, [&](const char* name, const auto& member) { out[name] = member; });
  out[kSequenceSteps] = sequence_steps;
  out[kAveraged] = averaged;
  out[kLastRate] = rate;
  out[kLossWeight] = loss.weight;
  out[kRegrouped] = {regrouped.epoch, regrouped.batch, regrouped.samples};
  for (const auto& [number, seen] : measured) {
    nlohmann::json& one = out[kMeasured][number];
    one[kShare] = seen.share;
    members_of_plateau(seen.plateau,
                       [&](const char* name, const auto& member) { one[name] = member; });
  }
  return out;
}

Result<Position> Position::from(const nlohmann::json& given) {
  Position out;
  try {
    members(out, [&](const char* name, auto& member) { given.at(name).get_to(member); });
    out.sequence_steps = given.value(kSequenceSteps, uint64_t{0});  // earlier ones have none
    out.averaged = given.value(kAveraged, uint64_t{0});
    out.rate = given.value(kLastRate, 0.0);
    out.loss.weight = given.value(kLossWeight, static_cast<double>(out.samples));
    if (given.contains(kRegrouped)) {
      const nlohmann::json& three = given[kRegrouped];
      out.regrouped = {three.at(0), three.at(1), three.at(2)};
    }
    auto measured = [&](const std::string& number, const nlohmann::json& one) {
      Measured& seen = out.measured[number];
      seen.share = one.value(kShare, 0.0);
      members_of_plateau(seen.plateau,
                         [&](const char* name, auto& member) { one.at(name).get_to(member); });
    };
    // Earlier checkpoints have the learning rate's alone, or none.
    if (given.contains(kPlateau)) measured("learning_rate", given[kPlateau]);
    if (given.contains(kMeasured))
      for (const auto& [number, one] : given[kMeasured].items())
        measured(number, one);
  } catch (const nlohmann::json::exception& wrong) {
    return Status(TN_DATA_LOSS, cat("position of the run: ", wrong.what()));
  }
  return out;
}

}  // namespace tenon::trainer
