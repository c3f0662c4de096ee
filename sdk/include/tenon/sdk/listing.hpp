// SPDX-License-Identifier: Apache-2.0
#pragma once
// The components of a role that the host knows, loaded or not: for messages and for their schemas.

#include <string>

#include <nlohmann/json.hpp>

#include "tenon/sdk/component.hpp"

namespace tenon {

// As tn_host_component.list gives them: [{"id", "schema", ...}].
inline nlohmann::json listed_components(tn_ctx* ctx, std::string_view role) {
  StringSink text;
  Status ignored(services.component->list(ctx, str(role), text.get()));  // then none are known
  nlohmann::json all = nlohmann::json::parse(text.text, nullptr, false);
  return all.is_array() ? all : nlohmann::json::array();
}

// "entropy, minmax, com.acme.odd": ids that begin with `prefix` by what follows it.
inline std::string listed_names(tn_ctx* ctx, std::string_view role, std::string_view prefix) {
  std::string out;
  for (const nlohmann::json& one : listed_components(ctx, role)) {
    std::string id = one.value("id", "");
    out += cat(out.empty() ? "" : ", ", id.starts_with(prefix) ? id.substr(prefix.size()) : id);
  }
  return out;
}

}  // namespace tenon
