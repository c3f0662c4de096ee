// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <atomic>
#include <csignal>

namespace tenon::python {
namespace {

// The main thread's call in flight, for the signal handler; lock-free, so safe to read there.
std::atomic<tn_cancel*> interrupted_call{nullptr};
static_assert(std::atomic<tn_cancel*>::is_always_lock_free);
struct sigaction python_action;

thread_local Interruptible* innermost = nullptr;

void on_interrupt(int number, siginfo_t* info, void* context) {
  tenon_cancel_request(interrupted_call.load());
  if (python_action.sa_flags & SA_SIGINFO) {
    python_action.sa_sigaction(number, info, context);
  } else {
    python_action.sa_handler(number);
  }
}

bool on_main_thread() {
  static const unsigned long main_thread = [] {
    py::object thread = py::module_::import("threading").attr("main_thread")();
    return thread.attr("ident").cast<unsigned long>();
  }();
  return PyThread_get_thread_ident() == main_thread;
}

// False where the signal has no handler: then it keeps its meaning.
bool catch_interrupts() {
  struct sigaction now;
  if (sigaction(SIGINT, nullptr, &now) != 0) return false;
  if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return false;
  struct sigaction ours{};
  ours.sa_sigaction = on_interrupt;
  ours.sa_flags = SA_SIGINFO;
  sigemptyset(&ours.sa_mask);
  python_action = now;
  return sigaction(SIGINT, &ours, nullptr) == 0;
}

// Where the call was: a traceback knows the callback's lines only.
void add_note(const py::object& raised, const Session& session, tn_status* taken) {
  try {
    session.check(taken);
  } catch (const Error& error) {
    raised.attr("add_note")(error.what());
  }
}

}  // namespace

Interruptible::Interruptible(const SessionPtr& session) : session_(session), outer_(innermost) {
  session_->check(tenon_cancel_new(session_->raw(), &cancel_));
  if (!outer_ && on_main_thread()) {
    interrupted_call = cancel_;
    catches_ = catch_interrupts();
  }
  innermost = this;
}

Interruptible::~Interruptible() {
  if (catches_) sigaction(SIGINT, &python_action, nullptr);
  if (!outer_) {
    tn_cancel* mine = cancel_;
    interrupted_call.compare_exchange_strong(mine, nullptr);
  }
  innermost = outer_;
  tenon_cancel_free(cancel_);
}

void Interruptible::stop(py::error_already_set& thrown) {
  tenon_cancel_request(cancel_);
  wanted_ = thrown.value();
}

void Interruptible::finish(tn_status* taken) {
  if (wanted_) {
    if (taken) add_note(wanted_, *session_, taken);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(wanted_.ptr())), wanted_.ptr());
    throw py::error_already_set();
  }
  if (PyErr_CheckSignals() != 0) {
    tenon_status_release(taken);
    throw py::error_already_set();
  }
  session_->check(taken);
}

bool stop_with(py::error_already_set& thrown) {
  if (!innermost) return false;
  innermost->stop(thrown);
  return true;
}

}  // namespace tenon::python
