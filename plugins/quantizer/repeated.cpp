// SPDX-License-Identifier: Apache-2.0
#include "repeated.hpp"

#include "tenon/sdk/alike.hpp"

namespace tenon::quantizer {

Result<Node> added_again(EditView edit,
                         Node node,
                         std::vector<Value> inputs,
                         std::string_view name) {
  return edit.add({.type = node.type(),
                   .inputs = std::move(inputs),
                   .attrs = attributes_of(node),
                   .n_outputs = node.n_outputs(),
                   .name = name,
                   .domain = node.domain(),
                   .scope = node.scope()});
}

Result<Node> repeated(EditView edit,
                      Node node,
                      const std::map<uint64_t, Value>& inputs,
                      std::string_view what) {
  std::vector<Value> all = edit.node(node.id).inputs();
  for (auto [i, instead] : inputs)
    all[i] = instead;
  return added_again(edit, node, std::move(all), cat(node.name(), what));
}

}  // namespace tenon::quantizer
