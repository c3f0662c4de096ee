// SPDX-License-Identifier: Apache-2.0
#pragma once
// Long calls: without the GIL, and stopped by Ctrl-C.

#include <pybind11/pybind11.h>

#include "session.hpp"

namespace tenon::python {

// While it lives, an interrupt signal that Python handles also requests cancellation. Only on the
// main thread: there Python runs its signal handlers, but not before the call returns.
class Interruptible {
 public:
  explicit Interruptible(const SessionPtr& session);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  const tn_cancel* cancel() const { return cancel_; }
  // With the GIL: throws what Python's handler or a callback wanted to raise, else checks.
  void finish(tn_status* taken);

  void stop(py::error_already_set& thrown);

 private:
  SessionPtr session_;
  tn_cancel* cancel_ = nullptr;
  bool catches_ = false;
  Interruptible* outer_ = nullptr;
  py::object wanted_;  // an exception that a callback raised
};

// Keeps what a callback on this thread raised for the call in flight; false when there is none.
bool stop_with(py::error_already_set& thrown);

// body(cancel) -> tn_status*, run without the GIL.
template <class Kind = HostCall, class Body>
void run_interruptible(const SessionPtr& session, Body&& body) {
  Interruptible call(session);
  tn_status* status = without_gil<Kind>([&] { return body(call.cancel()); });
  call.finish(status);
}

}  // namespace tenon::python
