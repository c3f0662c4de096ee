// SPDX-License-Identifier: Apache-2.0
#include "services/cancel.hpp"

#include "services/services.hpp"

namespace tenon::host {

const tn_host_cancel* cancel_service() {
  static const tn_host_cancel table{
      sizeof table, 1, [](const tn_cancel* cancel) {
        return cancel ? cancel->requested.load(std::memory_order_relaxed) : 0;
      }};
  return &table;
}

}  // namespace tenon::host
