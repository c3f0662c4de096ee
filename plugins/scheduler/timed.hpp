// SPDX-License-Identifier: Apache-2.0
#pragma once
// What all schedules share: where a step lies in a schedule that ends, a warm-up in front, and a
// rounding behind. A schedule is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   Result<double> at(uint64_t step, uint64_t total) const;
// and TENON_TIMED in place of TENON_SCHEDULE.

#include <algorithm>
#include <cmath>

#include "tenon/sdk/role/schedule.hpp"

namespace tenon::scheduler {

inline uint64_t saturating_sub(uint64_t from, uint64_t what) {
  return from > what ? from - what : 0;
}
// What is left of a known number of steps.
inline uint64_t left_of(uint64_t total, uint64_t gone) {
  return total == TN_STEPS_UNKNOWN ? total : saturating_sub(total, gone);
}

// The option "steps", or else what the caller says: 0 in the option stands for the caller's.
class Length {
 public:
  static Length of(const Options& options) {
    Length out;
    out.steps_ = static_cast<uint64_t>(options.integer("steps"));
    return out;
  }
  Result<uint64_t> of_caller(uint64_t total) const {
    if (steps_ > 0) return steps_;
    if (total != TN_STEPS_UNKNOWN) return total;
    return invalid(
        "option steps: expected how many steps it takes, as the caller does not say; got none");
  }
  // From 0 at the first step to 1 at the end and after it; a schedule of no steps has ended.
  Result<double> share(uint64_t step, uint64_t total) const {
    TN_TRY(steps, of_caller(total));
    if (step >= steps) return 1.0;
    return static_cast<double>(step) / static_cast<double>(steps);
  }

 private:
  uint64_t steps_ = 0;
};

// Learning rates start low (He et al., CVPR 2019, 3.1: step i of m, counted from 1, takes i / m),
// or grow from a given factor as PyTorch's LinearLR does.
class Warmup {
 public:
  static Warmup of(const Options& options) {
    Warmup out;
    out.steps_ = static_cast<uint64_t>(options.integer("warmup"));
    out.from_ = options.number("warmup_from", -1);
    return out;
  }
  uint64_t steps() const { return steps_; }
  double factor(uint64_t step) const {
    auto at = static_cast<double>(step), all = static_cast<double>(steps_);
    return from_ < 0 ? (at + 1) / all : from_ + (1 - from_) * at / all;
  }

 private:
  uint64_t steps_ = 0;
  double from_ = -1;
};

template <class T>
class Timed {
 public:
  static Result<Timed> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(made, T::create(ctx, options));
    return Timed(std::move(made), options);
  }
  // The steps of the warm-up are not the schedule's own: its first step is the one after them. It
  // rises to that also where the caller ends before: a schedule of no steps would begin at its end,
  // and not each one can be of a single step. Then it is the first value of a long one.
  Result<double> value(uint64_t step, uint64_t total) const {
    uint64_t gone = warmup_.steps(), left = left_of(total, gone);
    bool warming = step < gone;
    if (warming && left < 2) left = kLong;
    TN_TRY(base, schedule_.at(warming ? 0 : step - gone, left));
    double value = warming ? base * warmup_.factor(step) : base;
    return multiple_ > 0 ? whole(value / multiple_) * multiple_ : value;
  }

 private:
  Timed(T&& schedule, const Options& options)
      : schedule_(std::move(schedule)),
        warmup_(Warmup::of(options)),
        multiple_(options.number("multiple")) {}
  // Rounded down, but for what arithmetic has left below a whole number.
  static double whole(double x) {
    constexpr double kRounding = 1e-9;
    double nearest = std::round(x);
    return std::abs(x - nearest) <= kRounding * std::abs(nearest) ? nearest : std::floor(x);
  }
  static constexpr uint64_t kLong = 1'000'000;
  T schedule_;
  Warmup warmup_;
  double multiple_;
};

}  // namespace tenon::scheduler

// Options as they stand in more than one schema.
#define TENON_TIMED_OPTIONS                                                       \
  "\"warmup\": {\"type\": \"integer\", \"minimum\": 0, \"default\": 0, "          \
  "\"description\": \"so many steps before it, that rise to its first value\"}, " \
  "\"warmup_from\": {\"type\": \"number\", \"minimum\": 0, \"maximum\": 1, "      \
  "\"description\": \"factor of the first warm-up step (absent: 1 / warmup)\"}, " \
  "\"multiple\": {\"type\": \"number\", \"minimum\": 0, \"default\": 0, "         \
  "\"description\": \"values are rounded down to a multiple of this; 0: not\"}"
#define TENON_STEPS_OPTION                                              \
  "\"steps\": {\"type\": \"integer\", \"minimum\": 0, \"default\": 0, " \
  "\"description\": \"steps until its end; 0: all that the caller has\"}"
// required: names of options as a JSON list, "[]" for none.
#define TENON_TIMED(word, Class, id, summary, properties, required)          \
  TENON_SCHEDULE(word, tenon::scheduler::Timed<Class>, id, summary,          \
                 "{\"required\": " required ", \"properties\": {" properties \
                 ", " TENON_TIMED_OPTIONS "}}")
