// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON values as option values. Lists of numbers or of texts become lists, other lists and objects
// stay JSON text.

#include <nlohmann/json.hpp>

#include "values/any.hpp"

namespace tenon::host {

using Json = nlohmann::ordered_json;

// `what` names the text in the message: "options: line 1, column 7: expected ...".
Result<Json> parse_json(std::string_view text, std::string_view what);
// A JSON object; empty text is one without members.
Result<Json> parse_object(std::string_view text, std::string_view what);
Any any_of_json(const Json& value);
// Whether a number, a text or a list of them is the one in JSON, all of it: 4.0 is 4.
bool is_json(const tn_any& value, const Json& json);
// As text for others, who rely on UTF-8: names may be made of any bytes.
template <class AnyJson>
std::string json_text(const AnyJson& value) {
  return value.dump(-1, ' ', false, AnyJson::error_handler_t::replace);
}

}  // namespace tenon::host
