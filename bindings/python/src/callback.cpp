// SPDX-License-Identifier: Apache-2.0
// Python functions that are notified of a training run.
#include "tenon/role/callback.h"

#include "model.hpp"
#include "python_function.hpp"

namespace tenon::python {
namespace {

constexpr std::string_view kCallback = "tenon.callback/1";

struct PythonCallback {
  py::object step, epoch;  // or None
  SessionPtr session;
  tn_callback table;
};

int32_t stops(const py::object& answer) {
  if (answer.is_none()) return 0;
  if (!py::isinstance<py::bool_>(answer))
    throw py::type_error(cat("callback: expected True to end the run, or None, got ",
                             std::string(py::repr(answer))));
  return answer.cast<bool>();
}

tn_status* step(void* self, const tn_progress_point* at, int32_t* out_stop) {
  const auto& callback = *static_cast<PythonCallback*>(self);
  return with_gil(callback.session, [&] {
    py::dict point;
    point["step"] = at->step;
    point["epoch"] = at->epoch;
    point["loss"] = at->loss;
    point["rate"] = at->rate;
    point["skipped"] = at->skipped != 0;
    *out_stop = stops(callback.step(point));
  });
}

tn_status* epoch(void* self, tn_str record, const tn_graph* model, int32_t* out_stop) {
  const auto& callback = *static_cast<PythonCallback*>(self);
  return with_gil(callback.session, [&] {
    tn_graph* copy = nullptr;  // Python may keep it
    callback.session->check(callback.session->graph->clone(model, &copy));
    auto now = std::make_shared<Model>(callback.session, copy);
    *out_stop = stops(callback.epoch(py::str(record.data, record.len), now));
  });
}

std::shared_ptr<Component> of_functions(const SessionPtr& session,
                                        py::object on_step,
                                        py::object on_epoch) {
  tn_callback table{sizeof table, 1, on_step.is_none() ? nullptr : step,
                    on_epoch.is_none() ? nullptr : epoch};
  auto self = std::make_unique<PythonCallback>(
      PythonCallback{std::move(on_step), std::move(on_epoch), session, table});
  auto made = std::make_shared<Component>(session, kCallback, "python.function", &self->table,
                                          self.get(), end_with_gil<PythonCallback>);
  static_cast<void>(self.release());  // the component's from now on
  return made;
}

}  // namespace

void bind_callbacks(py::module_& module) {
  module.def("callback_of_functions", of_functions);
}

}  // namespace tenon::python
