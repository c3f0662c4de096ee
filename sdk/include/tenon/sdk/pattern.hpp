// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which names and nodes an option like `only` or `skip` means. Patterns are the shell's: * is any
// text, ? any one character, [...] one of these; or a size, such as "size<4096": how many numbers
// the constants hold that a node reads, by <, <=, > or >=.

#include <charconv>
#include <optional>

#include <fnmatch.h>

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/graph.hpp"

namespace tenon {

inline bool matches(const std::string& pattern, std::string_view text) {
  return fnmatch(pattern.c_str(), std::string(text).c_str(), FNM_NOESCAPE) == 0;
}

inline int64_t constant_elements(Node node) {
  int64_t n = 0;
  for (Value input : node.inputs())
    if (input && input.is_constant()) n += input.type().elements();
  return n;
}

// Whether "size<4096" means something so large; nothing where the pattern is about no size.
inline std::optional<bool> matches_size(std::string_view pattern, int64_t elements) {
  constexpr std::string_view kSize = "size";
  if (!pattern.starts_with(kSize) || pattern.size() < 6) return std::nullopt;
  const char sign = pattern[4];
  const bool takes_equal = pattern[5] == '=';
  const char *begin = pattern.data() + (takes_equal ? 6 : 5),
             *end = pattern.data() + pattern.size();
  int64_t bound = 0;
  auto [rest, failed] = std::from_chars(begin, end, bound);
  if ((sign != '<' && sign != '>') || failed != std::errc() || rest != end) return std::nullopt;
  if (elements == bound) return takes_equal;
  return (elements < bound) == (sign == '<');
}

// Whether the pattern means the node: by its name, operator, scope, "scope/name" or size.
inline bool matches(const std::string& pattern, Node node) {
  if (pattern.starts_with("size"))
    if (auto meant = matches_size(pattern, constant_elements(node))) return *meant;
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

// The nodes that a pass is for: those that `only` means, or all, less those that `skip` means.
struct Selected {
  std::vector<std::string> only = {}, skip = {};

  static Selected read(const Options& options) {
    return {options.texts("only"), options.texts("skip")};
  }
  // Why the node is left alone; empty: it is not.
  std::string why_left(Node node) const {
    std::string skipped = matched_by(skip, node);
    if (!skipped.empty()) return cat("in the skip list (", skipped, ")");
    if (only.empty() || !matched_by(only, node).empty()) return "";
    return "not in the list of option only";
  }
  bool takes(Node node) const { return why_left(node).empty(); }
  // The same for nodes that go together: one of them in `skip` is enough to leave all, and one in
  // `only` to take them.
  std::string why_left(const std::vector<Node>& nodes) const {
    std::string why = "not in the list of option only";
    for (Node node : nodes) {
      std::string skipped = matched_by(skip, node);
      if (!skipped.empty()) return cat("in the skip list (", skipped, ")");
      if (only.empty() || !matched_by(only, node).empty()) why.clear();
    }
    return nodes.empty() && only.empty() ? "" : why;
  }
  // A pattern that means no node of the graph or of bodies in it is an error.
  Status check(Graph graph) const {
    for (const auto* patterns : {&only, &skip})
      for (const std::string& pattern : *patterns)
        if (!means_any(graph, pattern))
          return invalid(cat("option ", patterns == &only ? "only" : "skip", ": '", pattern,
                             "' matches no node: expected names, operators, scopes or sizes, with "
                             "* and ?"));
    return {};
  }

 private:
  static bool means_any(Graph graph, const std::string& pattern) {
    for (Node node : graph.nodes()) {
      if (matches(pattern, node)) return true;
      for (uint64_t i = 0; i < services.graph->attr_count(node.graph, node.id); ++i) {
        tn_any attr = node.attr(view(services.graph->attr_name(node.graph, node.id, i)));
        if (attr.tag != TN_ANY_GRAPH) continue;
        if (means_any({static_cast<const tn_graph*>(attr.v.p)}, pattern)) return true;
      }
    }
    return false;
  }
};

// These options in a component's schema, JSON without braces. what: "layers to prune".
#define TENON_SELECTED_OPTIONS(what)                                                                                       \
  R"("only": {"type": ["array", "string"], "items": {"type": "string"}, "description": ")" what                            \
  R"(, all without it: patterns of names, operators, scopes or scope/name, with * and ?, or sizes, such as size>=4096"},)" \
  R"("skip": {"type": ["array", "string"], "items": {"type": "string"}, "description": "nodes to leave alone: patterns likewise"})"

}  // namespace tenon
