// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tenon.h's functions are made of: the session that programs hold, and the services' tables,
// since those functions are thin over the same services that plugins get.

#include <utility>

#include "tenon/tenon.h"

#include "guards.hpp"
#include "services/handle.hpp"
#include "services/session.hpp"

struct tenon_session : tenon::host::Handle<tenon_session> {
  explicit tenon_session(tenon::host::RegistryConfig config) : host(std::move(config)) {}
  tenon::host::Session host;
};

namespace tenon::host {

template <class Table>
const Table* service(std::string_view id) {
  return static_cast<const Table*>(find_service(id));
}

inline tn_ctx* context(tenon_session* session) {
  return session->host.own;
}

inline Status write_to(const tn_sink* sink, std::string_view text) {
  return Status(sink->write(sink->ctx, text.data(), text.size()));
}

}  // namespace tenon::host
