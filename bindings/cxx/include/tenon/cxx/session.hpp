// SPDX-License-Identifier: Apache-2.0
#pragma once
// A session and the tables of the host services that bindings use. Objects made from a session hold
// a shared_ptr to it: a garbage collector frees them in any order, and the session must go last.

#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "tenon/cxx/error.hpp"
#include "tenon/cxx/handle.hpp"
#include "tenon/cxx/services.hpp"

namespace tenon::cxx {

using Json = nlohmann::ordered_json;

inline std::string dump(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

class Session : public Services {
 public:
  explicit Session(const Json& config = Json::object()) {
    check(tenon_open(str(dump(config)), &raw_));
    try {
      find_services(tenon_host(raw_));
      check(tenon_cancel_new(raw_, &cancel_));
    } catch (...) {
      tenon_close(raw_);
      throw;
    }
  }
  ~Session() {
    tenon_cancel_free(cancel_);
    tenon_close(raw_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // One trace at a time: the host ends all that is under way together.
  void start_trace() {
    if (is_traced_)
      throw Error(TN_FAILED_PRECONDITION, "expected no trace under way, got one that is not ended");
    tenon_trace_start(raw_);
    is_traced_ = true;
  }
  std::string stop_trace() {
    TextSink text;
    is_traced_ = false;
    check(tenon_trace_stop(raw_, text.get()));
    return std::move(text.text());
  }

  tenon_session* raw() const { return raw_; }
  // Requested by the program when the user wants to stop; every long call looks at it.
  tn_cancel* cancel() const { return cancel_; }
  // For loops whose calls are too short to notice a request to stop.
  void stop_if_cancelled() const {
    if (stopping->requested(cancel_)) throw Error(TN_CANCELLED, "cancelled");
  }

 private:
  tenon_session* raw_ = nullptr;
  tn_cancel* cancel_ = nullptr;
  bool is_traced_ = false;
};

using SessionPtr = std::shared_ptr<Session>;

template <class T>
using Handle = CountedHandle<T, Session>;

// A task that progress bars show, from construction to destruction.
class Progress {
 public:
  Progress(const Session& session, std::string_view title, uint64_t total)
      : session_(session), task_(session.progress->begin(session.ctx(), str(title), total)) {}
  ~Progress() { session_.progress->end(session_.ctx(), task_); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(uint64_t done) { session_.progress->update(session_.ctx(), task_, done); }

 private:
  const Session& session_;
  uint64_t task_;
};

}  // namespace tenon::cxx
