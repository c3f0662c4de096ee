// SPDX-License-Identifier: Apache-2.0
#include "late_casts.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace tenon::onednn {
namespace {

constexpr int64_t kLeastBytes = int64_t{256} << 10;  // less is not worth a node

bool is_pointwise_of_same_shape(const Graph& graph, int reader, int value) {
  const Node& node = graph.nodes[size_t(reader)];
  return !node.expr.empty() && node.op != "Cast" && !node.outputs.empty() &&
         node.outputs[0] != kNone && graph.value(node.outputs[0]).dims == graph.value(value).dims;
}

bool is_repeated(const Graph& graph, const Node& node) {
  if (node.op != "Cast" || node.inputs[0] == kNone || node.outputs[0] == kNone) return false;
  const Value& result = graph.value(node.outputs[0]);
  return graph.value(node.inputs[0]).type == ElementType::kBool &&
         result.type == ElementType::kF32 && result.bytes() >= kLeastBytes &&
         result.n_outputs == 0 && result.users.size() > 1 &&
         std::ranges::all_of(result.users, [&](int reader) {
           return is_pointwise_of_same_shape(graph, reader, node.outputs[0]);
         });
}

}  // namespace

void delay_casts(Graph& graph) {
  const size_t n_nodes = graph.nodes.size();
  std::vector<std::vector<Node>> in_front(n_nodes);
  std::vector<bool> is_gone(n_nodes, false);
  for (size_t i = 0; i < n_nodes; ++i) {
    if (!is_repeated(graph, graph.nodes[i])) continue;
    const int cast = graph.nodes[i].outputs[0];
    is_gone[i] = true;
    const std::vector<int> readers = graph.value(cast).users;
    for (size_t k = 0; k < readers.size(); ++k) {
      Node again = graph.nodes[i];
      again.name += "/" + std::to_string(k);
      Value made = graph.value(cast);
      made.name += "/" + std::to_string(k);
      again.outputs[0] = graph.add_value(std::move(made));
      std::vector<int>& inputs = graph.nodes[size_t(readers[k])].inputs;
      std::ranges::replace(inputs, cast, again.outputs[0]);
      in_front[size_t(readers[k])].push_back(std::move(again));
    }
  }
  if (std::ranges::none_of(is_gone, [](bool gone) { return gone; })) return;
  std::vector<Node> ordered;
  for (size_t i = 0; i < n_nodes; ++i) {
    std::ranges::move(in_front[i], std::back_inserter(ordered));
    if (!is_gone[i]) ordered.push_back(std::move(graph.nodes[i]));
  }
  graph.reorder(std::move(ordered));
}

}  // namespace tenon::onednn
