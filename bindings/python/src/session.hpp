// SPDX-License-Identifier: Apache-2.0
#pragma once
// A session and the host's tables that the module uses, and how the module calls them: never with
// the GIL held, because a call may wait for a thread that is in a callback, and that needs the GIL.

#include <memory>
#include <mutex>

#include <pybind11/pybind11.h>
#include <unistd.h>

#include "tenon/cxx/handle.hpp"
#include "tenon/cxx/services.hpp"

namespace tenon::python {

namespace py = pybind11;
using cxx::cat, cxx::Error, cxx::invalid, cxx::str, cxx::TextSink, cxx::view;

class Session : public cxx::Services {
 public:
  explicit Session(const std::string& config);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  tenon_session* raw() const { return raw_; }
  // Throws Error, with its domain; takes the status over.
  void check(tn_status* taken) const;
  // A status for the host, from inside a callback.
  tn_status* status_of(const Error& error) const;

  // None takes the callback away.
  void on_log(py::object seen);
  void on_progress(py::object seen);

 private:
  tenon_session* raw_ = nullptr;
  py::object log_, progress_;
};

using SessionPtr = std::shared_ptr<Session>;

// A call that may hold locks of the host. A child of fork has those of other threads' calls locked
// and never unlocked: in it the constructor throws.
class HostCall {
 public:
  HostCall();
  ~HostCall();
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;
};
// A run of a plan and what it reads, or the end of a handle: works in every child.
struct PlainCall {};

// Without the GIL for as long as it lives. Python ends daemon threads that ask for the GIL while
// the interpreter ends, by unwinding their stacks; this one stays where it is, as since
// Python 3.14.
class WithoutTheGil {
 public:
  WithoutTheGil() : thread_(PyEval_SaveThread()) {}
  ~WithoutTheGil() {
    try {
      PyEval_RestoreThread(thread_);
    } catch (...) {
      for (;;)
        ::pause();
    }
  }
  WithoutTheGil(const WithoutTheGil&) = delete;
  WithoutTheGil& operator=(const WithoutTheGil&) = delete;

 private:
  PyThreadState* thread_;
};

// Runs body without the GIL, whether or not this thread has it.
template <class Kind = HostCall, class Body>
decltype(auto) without_gil(Body&& body) {
  if (!PyGILState_Check()) return body();
  [[maybe_unused]] Kind call;
  WithoutTheGil released;
  return body();
}

struct WithoutGil {
  template <class Call>
  void operator()(Call&& call) const {
    without_gil<PlainCall>(call);
  }
};
template <class T>
using Handle = cxx::CountedHandle<T, Session, WithoutGil>;

}  // namespace tenon::python
