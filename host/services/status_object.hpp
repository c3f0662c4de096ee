// SPDX-License-Identifier: Apache-2.0
#pragma once
// The status object itself, and the service "tenon.host.status/1" over it.

#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/host/status.h"

#include "services/handle.hpp"

struct tn_status : tenon::host::Handle<tn_status> {
  tn_ctx* owner = nullptr;  // counted there; NULL when the host made it
  int32_t code = TN_UNKNOWN;
  std::string domain;
  std::string message;
  std::vector<std::pair<std::string, std::string>> details;
  tn_status* cause = nullptr;            // owned
  mutable std::list<std::string> texts;  // what whole_text() has handed out
  bool is_blamed = false;                // its message names the plugin whose fault it is
};

namespace tenon::host {

// Never NULL and never throws: without memory it is a static status. Takes over cause.
tn_status* new_status(tn_ctx* owner,
                      int32_t code,
                      std::string_view domain,
                      std::string_view message,
                      tn_status* cause) noexcept;
void release_status(tn_status* status) noexcept;
// A fault (TN_INTERNAL) that a plugin's function answers with names plugin, function and whose
// function it is ("operator Squircle"). Only the innermost does: others only pass it on.
tn_status* blame(tn_status* answer,
                 std::string_view plugin,
                 std::string_view function,
                 std::string_view of) noexcept;
std::string status_text(const tn_status* status);  // "domain: message: cause"
// The same, kept with the status: the details and causes of the moment.
tn_str whole_text(const tn_status* status) noexcept;
const tn_host_status* status_service();

}  // namespace tenon::host
