// SPDX-License-Identifier: Apache-2.0
// tenon.h: plugins.
#include <nlohmann/json.hpp>

#include "tenon/role/backend.h"

#include "capi/capi.hpp"
#include "registry/component.hpp"
#include "registry/registry.hpp"
#include "services/boundary.hpp"
#include "values/json_any.hpp"

using tenon::host::guarded;
using tenon::host::Made;
using tenon::host::Result;
using tenon::host::sink_into;
using tenon::host::Status;
using tenon::host::write_to;

namespace {

Status ask_devices(tn_ctx* ctx, const std::string& id, nlohmann::json* devices) {
  TN_TRY(backend, Made<tn_backend>::create(ctx, "tenon.backend/1", id, nullptr));
  std::string text;
  tn_sink sink = sink_into(&text);
  TN_CHECK(backend.called("devices", backend->devices(backend.self(), &sink)));
  *devices = nlohmann::json::parse(text, nullptr, false);
  if (devices->is_array()) return {};
  return {TN_INTERNAL, "devices() is no JSON array"};
}

// What every backend has to run on. This loads the backends, unlike the rest of the report.
nlohmann::json backends_json(tenon_session* session) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto* one : session->host.registry->described("tenon.backend/1")) {
    nlohmann::json devices;
    Status asked = ask_devices(tenon::host::context(session), one->id, &devices);
    if (!asked.ok()) devices = {{{"why", asked.text()}}};
    all.push_back({{"id", one->id}, {"devices", devices}});
  }
  return all;
}

}  // namespace

namespace tenon::host::exported {

tn_status* tenon_plugin_list(tenon_session* session, const tn_sink* sink) {
  return guarded([&] { return write_to(sink, session->host.registry->list_plugins()); });
}

tn_status* tenon_plugin_doctor(tenon_session* session, const tn_sink* sink) {
  return guarded([&]() -> Status {
    nlohmann::json report = nlohmann::json::parse(session->host.registry->doctor());
    report["backends"] = backends_json(session);
    return write_to(sink, tenon::host::json_text(report));
  });
}

tn_status* tenon_plugin_load(tenon_session* session, tn_str path_or_id) {
  return guarded([&] { return session->host.registry->load(tenon::host::view(path_or_id)); });
}

tn_status* tenon_plugin_balance(tenon_session* session, const tn_sink* sink) {
  return guarded([&] { return write_to(sink, session->host.registry->balance()); });
}

}  // namespace tenon::host::exported
