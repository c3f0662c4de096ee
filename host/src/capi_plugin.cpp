// SPDX-License-Identifier: Apache-2.0
// tenon.h: plugins.
#include "boundary.hpp"
#include "capi.hpp"
#include "registry.hpp"

using tenon::host::guarded;
using tenon::host::write_to;

tn_status* tenon_plugin_list(tenon_session* session, const tn_sink* sink) {
  return guarded([&] { return write_to(sink, session->host.registry->list_plugins()); });
}

tn_status* tenon_plugin_doctor(tenon_session* session, const tn_sink* sink) {
  return guarded([&] { return write_to(sink, session->host.registry->doctor()); });
}

tn_status* tenon_plugin_load(tenon_session* session, tn_str path_or_id) {
  return guarded([&] { return session->host.registry->load(tenon::host::view(path_or_id)); });
}

tn_status* tenon_plugin_balance(tenon_session* session, const tn_sink* sink) {
  return guarded([&] { return write_to(sink, session->host.registry->balance()); });
}
