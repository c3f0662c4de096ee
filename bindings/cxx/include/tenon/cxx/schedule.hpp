// SPDX-License-Identifier: Apache-2.0
#pragma once
// Schedules: a number for each step, from any component of role tenon.schedule/1.

#include "tenon/role/schedule.h"

#include "tenon/cxx/component.hpp"

namespace tenon::cxx {

class Schedule {
 public:
  explicit Schedule(Component component) : component_(std::move(component)) {
    table_ = component_.table<tn_schedule>(kRole, &self_);
  }
  Schedule(const SessionPtr& session, const std::string& id, const Options& options)
      : Schedule(Component(session, kRole, id, options)) {}

  double value(uint64_t step, uint64_t total_steps = TN_STEPS_UNKNOWN) const {
    double out = 0;
    check(table_->value(self_, step, total_steps, &out));
    return out;
  }
  const Component& component() const { return component_; }

  static constexpr const char* kRole = "tenon.schedule/1";

 private:
  Component component_;
  const tn_schedule* table_ = nullptr;
  void* self_ = nullptr;
};

}  // namespace tenon::cxx
