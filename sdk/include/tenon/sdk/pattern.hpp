// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which names and nodes an option like `skip` or `ignore` means. Patterns are the shell's: * is any
// text, ? any one character, [...] one of these.

#include <fnmatch.h>

#include "tenon/sdk/graph.hpp"

namespace tenon {

inline bool matches(const std::string& pattern, std::string_view text) {
  return fnmatch(pattern.c_str(), std::string(text).c_str(), FNM_NOESCAPE) == 0;
}

// Whether the pattern means the node: by its name, operator, scope or "scope/name".
inline bool matches(const std::string& pattern, Node node) {
  return matches(pattern, node.name()) || matches(pattern, node.type()) ||
         matches(pattern, node.scope()) || matches(pattern, cat(node.scope(), "/", node.name()));
}

// The first of the patterns that means this name or node; empty: none.
template <class Named>
std::string matched_by(const std::vector<std::string>& patterns, Named named) {
  for (const std::string& pattern : patterns)
    if (matches(pattern, named)) return pattern;
  return "";
}

}  // namespace tenon
