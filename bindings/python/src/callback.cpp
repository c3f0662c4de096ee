// SPDX-License-Identifier: Apache-2.0
// Python functions that are notified of a training run.
#include "tenon/role/callback.h"

#include "model.hpp"

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

// What Python raises is raised again where training was called from.
template <class Body>
tn_status* with_gil(const PythonCallback& callback, Body&& body) {
  py::gil_scoped_acquire held;
  try {
    body();
    return nullptr;
  } catch (py::error_already_set& thrown) {
    std::string what = thrown.what();
    if (stop_with(thrown))
      what = cat("it raised ", py::str(thrown.type().attr("__name__")).cast<std::string>());
    return callback.session->status_of(Error(TN_INVALID_ARGUMENT, what));
  } catch (const std::exception& thrown) {
    return callback.session->status_of(Error(TN_INVALID_ARGUMENT, thrown.what()));
  }
}

tn_status* step(void* self, const tn_progress_point* at, int32_t* out_stop) {
  const auto& callback = *static_cast<PythonCallback*>(self);
  return with_gil(callback, [&] {
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
  return with_gil(callback, [&] {
    tn_graph* copy = nullptr;  // Python may keep it
    callback.session->check(callback.session->graph->clone(model, &copy));
    auto now = std::make_shared<Model>(callback.session, copy);
    *out_stop = stops(callback.epoch(py::str(record.data, record.len), now));
  });
}

void end(void* self) {
  py::gil_scoped_acquire held;
  delete static_cast<PythonCallback*>(self);
}

std::shared_ptr<Component> of_functions(const SessionPtr& session,
                                        py::object on_step,
                                        py::object on_epoch) {
  tn_callback table{sizeof table, 1, on_step.is_none() ? nullptr : step,
                    on_epoch.is_none() ? nullptr : epoch};
  auto self = std::make_unique<PythonCallback>(
      PythonCallback{std::move(on_step), std::move(on_epoch), session, table});
  auto made = std::make_shared<Component>(session, kCallback, "python.function", &self->table,
                                          self.get(), end);
  static_cast<void>(self.release());  // end's from now on
  return made;
}

}  // namespace

void bind_callbacks(py::module_& module) {
  module.def("callback_of_functions", of_functions);
}

}  // namespace tenon::python
