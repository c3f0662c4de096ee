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
  visit("loss_sum", p.loss_sum);
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

constexpr const char* kPlateau = "plateau";

}  // namespace

nlohmann::json Position::to_json() const {
  nlohmann::json out;
  members(*this, [&](const char* name, const auto& member) { out[name] = member; });
  members_of_plateau(plateau,
                     [&](const char* name, const auto& member) { out[kPlateau][name] = member; });
  return out;
}

Result<Position> Position::from(const nlohmann::json& given) {
  Position out;
  try {
    members(out, [&](const char* name, auto& member) { given.at(name).get_to(member); });
    if (given.contains(kPlateau))  // earlier checkpoints have none
      members_of_plateau(out.plateau, [&](const char* name, auto& member) {
        given[kPlateau].at(name).get_to(member);
      });
  } catch (const nlohmann::json::exception& wrong) {
    return Status(TN_DATA_LOSS, cat("position of the run: ", wrong.what()));
  }
  return out;
}

}  // namespace tenon::trainer
