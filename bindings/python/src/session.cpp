// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include "interrupt.hpp"

namespace tenon::python {
namespace {

// Calls Python from any thread of the host. What the callee throws cannot cross the host: a wish to
// stop is kept for the call in flight, anything else is reported as Python does for destructors.
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

Session::Session(const std::string& config) {
  tn_status* failed = without_gil([&] { return tenon_open(str(config), &raw_); });
  if (failed) {
    Failure failure(tenon_status_code(failed), "host",
                    std::string(view(tenon_status_message(failed))));
    tenon_status_release(failed);
    throw failure;
  }
  host_ = tenon_host(raw_);
  try {
    find("tenon.host.component/1", &component);
    find("tenon.host.eval/1", &eval);
    find("tenon.host.graph/1", &graph);
    find("tenon.host.graph_edit/1", &edit);
    find("tenon.host.options/1", &options);
    find("tenon.host.status/1", &status);
    find("tenon.host.tensor/1", &tensor);
  } catch (...) {
    without_gil([this] { tenon_close(raw_); });
    throw;
  }
}

Session::~Session() {
  without_gil([this] { tenon_close(raw_); });
}

template <class Table>
void Session::find(const char* id, const Table** out) {
  *out = static_cast<const Table*>(host_->get_interface(host_, str(id)));
  if (!*out)
    throw Failure(TN_UNIMPLEMENTED, "python", cat("expected libtenon with ", id, ", got none"));
}

void Session::check(tn_status* taken) const {
  if (!taken) return;
  auto read = [&] {
    TextSink text;
    tn_status* failed = status->text(taken, text.get());
    if (failed) text.text = view(status->message(taken));
    status->release(failed);
    Failure failure(status->code(taken), std::string(view(status->domain(taken))), text.text);
    status->release(taken);
    return failure;
  };
  throw without_gil(read);
}

tn_status* Session::status_of(const Failure& failure) const {
  return status->make(ctx(), failure.code, str("python"), str(failure.what()), nullptr);
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
