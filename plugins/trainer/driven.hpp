// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of a step that change while it trains: each by its name, a schedule, and measured values.

#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/role/schedule.hpp"

#include "measured.hpp"

namespace tenon::trainer {

inline constexpr std::string_view kSchedule = "tenon.schedule/1";
inline constexpr std::string_view kRate = "learning_rate";  // what `rate` is called among them

struct Driven {
  std::string name;
  Component schedule;
  std::optional<Plateau> plateau;
  std::optional<Follow> follow;

  // At the update `step` of so many, with what was measured so far.
  Result<double> value(uint64_t step, uint64_t total_steps, const Measured& seen) const;
};

// A schedule's value: finite, or an error that names schedule and step.
Result<double> value_at(const Component& schedule, uint64_t step, uint64_t total_steps);

// The options of ReduceLROnPlateau, and of: "validation" or "loss".
Result<Plateau> plateau_of(const nlohmann::json& given, bool validates);

// The option `schedules`: an object by names, or a "trainer.driven". text: what says that two are
// the same.
Result<std::vector<Driven>> driven_option(tn_ctx* ctx,
                                          const Options& options,
                                          bool validates,
                                          std::string* text);

// Live schedules by name, as one component: each with the rest of the list as `next`.
struct DrivenList {
  std::string name, rules;
  Component schedule, next;
  static Result<DrivenList> create(tn_ctx* ctx, const Options& options);
  Result<double> value(uint64_t step, uint64_t total_steps) const {
    return value_at(schedule, step, total_steps);
  }
};

}  // namespace tenon::trainer
