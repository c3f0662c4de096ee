// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the components that are made of Python functions have in common.

#include "interrupt.hpp"

namespace tenon::python {

// body(), called by the host from any of its threads: holds the GIL. What Python raises is raised
// again where the host was called from.
template <class Body>
tn_status* with_gil(const SessionPtr& session, Body&& body) {
  py::gil_scoped_acquire held;
  try {
    body();
    return nullptr;
  } catch (py::error_already_set& thrown) {
    std::string what = thrown.what();
    if (stop_with(thrown))
      what = cat("it raised ", py::str(thrown.type().attr("__name__")).cast<std::string>());
    return session->status_of(Error(TN_INVALID_ARGUMENT, what));
  } catch (const Error& thrown) {
    return session->status_of(thrown);
  } catch (const std::exception& thrown) {
    return session->status_of(Error(TN_INVALID_ARGUMENT, thrown.what()));
  }
}

// Lets go of what a component kept, with the GIL.
template <class T>
void end_with_gil(void* self) {
  py::gil_scoped_acquire held;
  delete static_cast<T*>(self);
}

}  // namespace tenon::python
