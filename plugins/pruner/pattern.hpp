// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes an option names.

#include <string>
#include <vector>

#include "tenon/sdk/graph.hpp"

namespace tenon::pruner {

// Whether text is what the pattern says: * is any text, ? any one character.
bool matches(std::string_view pattern, std::string_view text);
// The first pattern that fits the node's name, operator, scope or "scope/name"; empty: none.
std::string matched_by(const std::vector<std::string>& patterns, Node node);

}  // namespace tenon::pruner
