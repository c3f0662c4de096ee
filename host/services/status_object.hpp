// SPDX-License-Identifier: Apache-2.0
#pragma once
// The status object itself, and the service "tenon.host.status/1" over it.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/host/status.h"

struct tn_status {
  tn_ctx* owner = nullptr;  // counted there; NULL when the host made it
  int32_t code = TN_UNKNOWN;
  std::string domain;
  std::string message;
  std::vector<std::pair<std::string, std::string>> details;
  tn_status* cause = nullptr;  // owned
};

namespace tenon::host {

// Never NULL and never throws: without memory it is a static status. Takes over cause.
tn_status* new_status(tn_ctx* owner,
                      int32_t code,
                      std::string_view domain,
                      std::string_view message,
                      tn_status* cause) noexcept;
void release_status(tn_status* status) noexcept;
std::string status_text(const tn_status* status);  // "domain: message: cause"
const tn_host_status* status_service();

}  // namespace tenon::host
