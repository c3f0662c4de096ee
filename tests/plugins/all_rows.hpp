// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loads every plugin that was built and brings operators, so that sweeps over rows have them all.

#include <string>

#include <nlohmann/json.hpp>

#include "tenon/tenon.h"

#include "tenon/sdk/run.hpp"

namespace tenon::test {

inline Status load_all_rows(tenon_session* session) {
  StringSink sink;
  TN_CHECK(tenon_plugin_list(session, sink.get()));
  for (const nlohmann::json& plugin : nlohmann::json::parse(sink.text)) {
    bool has_rows = false;
    for (const nlohmann::json& component : plugin["components"])
      has_rows = has_rows || component["role"] == "tenon.ops/1";
    auto id = plugin["id"].get<std::string>();
    if (has_rows && plugin["usable"] == true) TN_CHECK(tenon_plugin_load(session, str(id)));
  }
  return {};
}

}  // namespace tenon::test
