// SPDX-License-Identifier: Apache-2.0
#pragma once
// A schedule is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   Result<double> value(uint64_t step, uint64_t total_steps) const;  // or TN_STEPS_UNKNOWN
// value is called from any thread.

#include <cmath>

#include "tenon/role/schedule.h"

#include "tenon/sdk/plugin.hpp"

namespace tenon {

template <class T>
struct ScheduleRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.schedule/1";
  static const tn_schedule* table() {
    static const tn_schedule table{sizeof table, 1, value};
    return &table;
  }
  static tn_status* value(void* self, uint64_t step, uint64_t total_steps, double* out) {
    return guard([&]() -> Status {
      *out = 0;
      TN_TRY(value, std::as_const(object_of<T>(self)).value(step, total_steps));
      if (!std::isfinite(value))
        return {TN_OUT_OF_RANGE, cat("step ", step, ": expected a finite number, got ", value)};
      *out = value;
      return {};
    });
  }
};

}  // namespace tenon

#define TENON_SCHEDULE(word, Class, id, summary, schema)                                      \
  TENON_COMPONENT_(word, tenon::ScheduleRole<Class>, "tenon.schedule/1", id, summary, schema, \
                   TN_COMP_REENTRANT | TN_COMP_DETERMINISTIC)
