// SPDX-License-Identifier: Apache-2.0
#pragma once
// A session and the host's tables that the module uses, and how the module calls them: never with
// the GIL held, because the host runs log and progress callbacks under a lock of its own, and these
// need the GIL.

#include <memory>
#include <mutex>

#include <pybind11/pybind11.h>

#include "tenon/host/component.h"
#include "tenon/host/eval.h"
#include "tenon/host/graph.h"
#include "tenon/host/graph_edit.h"
#include "tenon/host/options.h"
#include "tenon/host/tensor.h"

#include "failure.hpp"

namespace tenon::python {

namespace py = pybind11;

class Session {
 public:
  explicit Session(const std::string& config);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  tenon_session* raw() const { return raw_; }
  tn_ctx* ctx() const { return host_->ctx; }
  // Throws Failure; takes the status over.
  void check(tn_status* taken) const;
  // A status for the host, from inside a callback.
  tn_status* status_of(const Failure& failure) const;

  // None takes the callback away.
  void on_log(py::object seen);
  void on_progress(py::object seen);

  const tn_host_component* component = nullptr;
  const tn_host_eval* eval = nullptr;
  const tn_host_graph* graph = nullptr;
  const tn_host_graph_edit* edit = nullptr;
  const tn_host_options* options = nullptr;
  const tn_host_status* status = nullptr;
  const tn_host_tensor* tensor = nullptr;

 private:
  template <class Table>
  void find(const char* id, const Table** out);

  tenon_session* raw_ = nullptr;
  const tn_host* host_ = nullptr;
  py::object log_, progress_;
};

using SessionPtr = std::shared_ptr<Session>;

// Runs body without the GIL, whether or not this thread has it.
template <class Body>
decltype(auto) without_gil(Body&& body) {
  if (!PyGILState_Check()) return body();
  py::gil_scoped_release released;
  return body();
}

// One counted object of the host.
template <class T>
class Handle {
 public:
  using Release = void(TN_CALL*)(T*);
  Handle() = default;
  Handle(SessionPtr session, T* taken, Release release)
      : session_(std::move(session)), raw_(taken), release_(release) {}
  Handle(Handle&& other) noexcept { swap(other); }
  Handle& operator=(Handle&& other) noexcept {
    swap(other);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (raw_) without_gil([this] { release_(raw_); });
  }
  T* get() const { return raw_; }
  const SessionPtr& session() const { return session_; }
  explicit operator bool() const { return raw_ != nullptr; }

 private:
  void swap(Handle& other) noexcept {
    std::swap(session_, other.session_);
    std::swap(raw_, other.raw_);
    std::swap(release_, other.release_);
  }
  SessionPtr session_;
  T* raw_ = nullptr;
  Release release_ = nullptr;
};

}  // namespace tenon::python
