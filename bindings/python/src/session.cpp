// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <atomic>

#include <pthread.h>

#include "interrupt.hpp"

namespace tenon::python {
namespace {

std::atomic<int> calls_in_progress{0};
thread_local int calls_of_this_thread = 0;
std::atomic<bool> lacks_threads{false};  // forked amid calls of others

void begin_child() {
  if (calls_in_progress != calls_of_this_thread) lacks_threads = true;
  calls_in_progress = calls_of_this_thread;
}

// Calls Python from any thread of the host. What the callee throws cannot cross the host: a request
// to stop is kept for the call in flight, anything else is reported as Python does for destructors.
template <class... Args>
void call_python(const py::object& seen, Args&&... args) {
  if (!Py_IsInitialized()) return;
  py::gil_scoped_acquire acquired;
  try {
    seen(std::forward<Args>(args)...);
  } catch (py::error_already_set& thrown) {
    if (thrown.matches(PyExc_Exception) || !stop_with(thrown)) {
      thrown.restore();
      PyErr_WriteUnraisable(seen.ptr());
    }
  }
}

py::str text_of(tn_str text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data, static_cast<Py_ssize_t>(text.len), "replace"));
}

void TN_CALL log_seen(void* arg, uint32_t level, tn_str who, tn_str message) {
  if (!Py_IsInitialized()) return;
  py::gil_scoped_acquire acquired;
  call_python(*static_cast<py::object*>(arg), level, text_of(who), text_of(message));
}

void TN_CALL progress_seen(void* arg, uint64_t task, tn_str title, uint64_t done, uint64_t total) {
  if (!Py_IsInitialized()) return;
  py::gil_scoped_acquire acquired;
  py::object now = done == UINT64_MAX ? py::none() : py::object(py::int_(done));
  call_python(*static_cast<py::object*>(arg), task, text_of(title), now, total);
}

}  // namespace

HostCall::HostCall() {
  static const int registered = pthread_atfork(nullptr, nullptr, begin_child);
  (void)registered;
  if (lacks_threads)
    throw Error(TN_FAILED_PRECONDITION,
                "this process was forked while other threads were compiling or loading, and never "
                "gets what they had locked: fork before such threads begin, or start processes "
                "with the method 'spawn' or 'forkserver' of multiprocessing");
  ++calls_in_progress;
  ++calls_of_this_thread;
}
HostCall::~HostCall() {
  --calls_of_this_thread;
  --calls_in_progress;
}

Session::Session(const std::string& config) {
  without_gil([&] {
    if (tn_status* failed = tenon_open(str(config), &raw_)) throw cxx::error_of(failed, "host");
  });
  try {
    find_services(tenon_host(raw_));
  } catch (...) {
    without_gil([this] { tenon_close(raw_); });
    throw;
  }
}

Session::~Session() {
  without_gil<PlainCall>([this] { tenon_close(raw_); });
}

void Session::check(tn_status* taken) const {
  if (!taken) return;
  throw without_gil<PlainCall>([&] {
    std::string domain(view(status->domain(taken)));
    return cxx::error_of(taken, std::move(domain));
  });
}

tn_status* Session::status_of(const Error& error) const {
  return status->make(ctx(), error.code(), str("python"), str(error.what()), nullptr);
}

void Session::on_log(py::object seen) {
  bool any = !seen.is_none();
  // The old callee lives until the host has let go of it.
  std::swap(log_, seen);
  without_gil([&] { tenon_on_log(raw_, any ? log_seen : nullptr, any ? &log_ : nullptr); });
}

void Session::on_progress(py::object seen) {
  bool any = !seen.is_none();
  std::swap(progress_, seen);
  without_gil(
      [&] { tenon_on_progress(raw_, any ? progress_seen : nullptr, any ? &progress_ : nullptr); });
}

}  // namespace tenon::python
