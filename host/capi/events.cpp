// SPDX-License-Identifier: Apache-2.0
// The C API: log lines, progress and traces on their way to the embedding program.
#include "capi/capi.hpp"
#include "services/boundary.hpp"
#include "services/log.hpp"
#include "services/trace.hpp"

namespace tenon::host::exported {

void tenon_on_log(tenon_session* session,
                  void(TN_CALL* seen)(void* arg, uint32_t level, tn_str who, tn_str message),
                  void* arg) {
  quietly([&] { session->host.log->on_log(seen, arg); });
}

void tenon_on_progress(
    tenon_session* session,
    void(TN_CALL* seen)(void* arg, uint64_t task, tn_str title, uint64_t done, uint64_t total),
    void* arg) {
  quietly([&] { session->host.log->on_progress(seen, arg); });
}

void tenon_trace_start(tenon_session* session) {
  quietly([&] { session->host.trace->start(); });
}

tn_status* tenon_trace_stop(tenon_session* session, const tn_sink* sink) {
  return guarded([&]() -> Status {
    std::string text = session->host.trace->stop();
    return Status(sink->write(sink->ctx, text.data(), text.size()));
  });
}

}  // namespace tenon::host::exported
