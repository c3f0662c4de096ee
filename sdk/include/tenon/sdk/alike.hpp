// SPDX-License-Identifier: Apache-2.0
#pragma once
// Making a node like another one.

#include "tenon/sdk/build.hpp"

namespace tenon {

// All attributes of a node that are set, with some changed or added.
inline std::vector<Attr> attributes_of(Node node, std::vector<Attr> changed = {}) {
  size_t n_changed = changed.size();
  for (uint64_t i = 0, n = services.graph->attr_count(node.graph, node.id); i < n; ++i) {
    std::string_view name = view(services.graph->attr_name(node.graph, node.id, i));
    bool kept = true;
    for (size_t k = 0; k < n_changed; ++k)
      kept = kept && changed[k].name != name;
    if (kept) changed.emplace_back(name, node.attr(name));
  }
  return changed;
}

// The same operator on other inputs, with as many outputs.
inline Node again(Builder& b,
                  Node node,
                  std::vector<Value> inputs,
                  std::vector<Attr> changed = {}) {
  return b.node({.type = node.type(),
                 .inputs = std::move(inputs),
                 .attrs = attributes_of(node, std::move(changed)),
                 .n_outputs = node.n_outputs(),
                 .domain = node.domain()});
}

}  // namespace tenon
