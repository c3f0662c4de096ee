// SPDX-License-Identifier: Apache-2.0
// Schedules: calling one, and a Python function as one.
#include "tenon/role/schedule.h"

#include <cmath>

#include <pybind11/stl.h>

#include "model.hpp"
#include "python_function.hpp"

namespace tenon::python {
namespace {

constexpr std::string_view kSchedule = "tenon.schedule/1";

double value(const Component& schedule, uint64_t step, std::optional<uint64_t> steps) {
  void* self = nullptr;
  const auto* table = schedule.table<tn_schedule>(kSchedule, &self);
  double out = 0;
  schedule.session()->check(without_gil(
      [&] { return table->value(self, step, steps.value_or(TN_STEPS_UNKNOWN), &out); }));
  return out;
}

struct PythonFunction {
  py::object call;
  SessionPtr session;
};

tn_status* call(void* self, uint64_t step, uint64_t steps, double* out) {
  auto& function = *static_cast<PythonFunction*>(self);
  return with_gil(function.session, [&] {
    py::object total = steps == TN_STEPS_UNKNOWN ? py::object(py::none()) : py::int_(steps);
    *out = py::float_(function.call(step, total));
    if (!std::isfinite(*out))
      throw Error(TN_OUT_OF_RANGE, cat("step ", step, ": expected a finite number, got ", *out));
  });
}

constexpr tn_schedule kFunctionTable{sizeof(tn_schedule), 1, call};

std::shared_ptr<Component> of_function(const SessionPtr& session, py::object function) {
  auto self = std::make_unique<PythonFunction>(PythonFunction{std::move(function), session});
  auto made = std::make_shared<Component>(session, kSchedule, "python.function", &kFunctionTable,
                                          self.get(), end_with_gil<PythonFunction>);
  static_cast<void>(self.release());  // the component's from now on
  return made;
}

}  // namespace

void bind_schedules(py::module_& module) {
  module.def("schedule_value", value);
  module.def("schedule_of_function", of_function);
}

}  // namespace tenon::python
