// SPDX-License-Identifier: Apache-2.0
#pragma once
// The key "needs" of an option's schema: what other options must be for this one to have an effect.

#include <string>
#include <vector>

#include "values/json_any.hpp"
#include "values/options.hpp"

namespace tenon::host {

// What is wrong with it in a schema whose options have these names; empty text: nothing.
std::string needs_fault(const Json& option, const Json& properties);

// Whether the option is there with another value than its default.
bool is_said(const std::string& name, const Json& properties, const tn_options& all);

// Why the option has no effect among all of them, defaults filled in; empty text: it has.
std::string why_no_effect(const std::string& name, const Json& properties, const tn_options& all);

}  // namespace tenon::host
