// SPDX-License-Identifier: Apache-2.0
// The C API: version, errors, requests to stop.
#include <memory>

#include "capi/capi.hpp"
#include "services/boundary.hpp"
#include "services/cancel.hpp"
#include "services/status_object.hpp"

namespace tenon::host::exported {

tn_str tenon_version() {
  return str(TENON_VERSION);
}

int32_t tenon_status_code(const tn_status* status) {
  return status_service()->code(status);
}
tn_str tenon_status_message(const tn_status* status) {
  return status ? whole_text(status) : tn_str{};
}
tn_status* tenon_status_text(const tn_status* status, const tn_sink* sink) {
  return guarded([&] { return Status(status_service()->text(status, sink)); });
}
void tenon_status_release(tn_status* status) {
  release_status(status);
}

tn_status* tenon_cancel_new(tenon_session*, tn_cancel** out) {
  *out = nullptr;
  return guarded([&]() -> Status {
    *out = std::make_unique<tn_cancel>().release();
    return {};
  });
}
void tenon_cancel_request(tn_cancel* cancel) {
  if (cancel) cancel->requested.store(1, std::memory_order_relaxed);
}
void tenon_cancel_free(tn_cancel* cancel) {
  std::unique_ptr<tn_cancel> ended(cancel);
}

}  // namespace tenon::host::exported
