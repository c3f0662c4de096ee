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
Any any_of_json(const Json& value);

}  // namespace tenon::host
