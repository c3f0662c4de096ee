// SPDX-License-Identifier: Apache-2.0
#pragma once
// A session and the tables of the host services that bindings use. Objects made from a session hold
// a shared_ptr to it: a garbage collector frees them in any order, and the session must go last.

#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "tenon/host/blob.h"
#include "tenon/host/cancel.h"
#include "tenon/host/component.h"
#include "tenon/host/eval.h"
#include "tenon/host/graph.h"
#include "tenon/host/graph_edit.h"
#include "tenon/host/log.h"
#include "tenon/host/options.h"
#include "tenon/host/progress.h"
#include "tenon/host/random.h"
#include "tenon/host/status.h"
#include "tenon/host/tensor.h"

#include "tenon/cxx/error.hpp"

namespace tenon::cxx {

using Json = nlohmann::ordered_json;

inline std::string dump(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

class Session {
 public:
  explicit Session(const Json& config = Json::object()) {
    check(tenon_open(str(dump(config)), &raw_));
    host_ = tenon_host(raw_);
    try {
      find_services();
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

  tenon_session* raw() const { return raw_; }
  tn_ctx* ctx() const { return host_->ctx; }
  // Requested by the program when the user wants to stop; every long call looks at it.
  tn_cancel* cancel() const { return cancel_; }
  // For loops whose calls are too short to notice a request to stop.
  void stop_if_cancelled() const {
    if (stopping->requested(cancel_)) throw Error(TN_CANCELLED, "cancelled");
  }

  const tn_host_blob* blob = nullptr;
  const tn_host_cancel* stopping = nullptr;
  const tn_host_component* component = nullptr;
  const tn_host_eval* eval = nullptr;
  const tn_host_graph* graph = nullptr;
  const tn_host_graph_edit* edit = nullptr;
  const tn_host_log* log = nullptr;
  const tn_host_options* options = nullptr;
  const tn_host_progress* progress = nullptr;
  const tn_host_random* random = nullptr;
  const tn_host_status* status = nullptr;
  const tn_host_tensor* tensor = nullptr;

 private:
  void find_services() {
    find("tenon.host.blob/1", &blob);
    find("tenon.host.cancel/1", &stopping);
    find("tenon.host.component/1", &component);
    find("tenon.host.eval/1", &eval);
    find("tenon.host.graph/1", &graph);
    find("tenon.host.graph_edit/1", &edit);
    find("tenon.host.log/1", &log);
    find("tenon.host.options/1", &options);
    find("tenon.host.progress/1", &progress);
    find("tenon.host.random/1", &random);
    find("tenon.host.status/1", &status);
    find("tenon.host.tensor/1", &tensor);
  }
  template <class Table>
  void find(const char* id, const Table** out) {
    *out = static_cast<const Table*>(host_->get_interface(host_, str(id)));
    if (!*out) throw Error(TN_UNIMPLEMENTED, cat("expected libtenon with ", id, ", got none"));
  }

  tenon_session* raw_ = nullptr;
  const tn_host* host_ = nullptr;
  tn_cancel* cancel_ = nullptr;
};

using SessionPtr = std::shared_ptr<Session>;

// Owns one counted object of the host.
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
    if (raw_) release_(raw_);
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

// Runs body inside a function that C calls: an exception becomes a status.
template <class Body>
tn_status* callback(const Session& session, Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error& thrown) {
    return session.status->make(session.ctx(), thrown.code(), {}, str(thrown.what()), nullptr);
  } catch (const std::bad_alloc&) {
    return session.status->make(session.ctx(), TN_RESOURCE_EXHAUSTED, {}, str("out of memory"),
                                nullptr);
  } catch (const std::exception& thrown) {
    return session.status->make(session.ctx(), TN_INTERNAL, {}, str(thrown.what()), nullptr);
  }
}

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
