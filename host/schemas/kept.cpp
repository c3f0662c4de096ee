// SPDX-License-Identifier: Apache-2.0
#include "schemas/kept.hpp"

namespace tenon::host {

const Json& schema_json(std::string_view text) {
  static Kept<Json> kept;
  if (const Json* found = kept.find(text)) return *found;
  Result<Json> made = parse_json(text, "options schema");
  return kept.keep(text, made.ok() ? std::move(*made) : Json());
}

const Json& schema_properties(std::string_view text) {
  static const Json kNone = Json::object();
  const Json& schema = schema_json(text);
  if (!schema.is_object() || !schema.contains("properties")) return kNone;
  const Json& properties = schema["properties"];
  return properties.is_object() ? properties : kNone;
}

}  // namespace tenon::host
