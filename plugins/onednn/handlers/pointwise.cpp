// SPDX-License-Identifier: Apache-2.0
// Pointwise operators: all that have a scalar expression, and Cast.

#include "../pointwise_group.hpp"
#include "../row_group.hpp"
#include "../softmax_front.hpp"
#include "exact.hpp"
#include "handlers.hpp"

namespace tenon::onednn {

std::string refuse_pointwise(const Graph& graph, const Node& node) {
  if (graph.values[node.outputs[0]].dims.size() > 8) return "more than eight axes";
  return is_pointwise(graph, node) ? "" : refuse_exact(graph, node);
}

void lower_pointwise(Lowering& lowering, int node) {
  if (!is_pointwise(lowering.graph(), lowering.graph().nodes[node])) {
    return lower_exact(lowering, node);
  }
  for (int input : lowering.graph().nodes[node].inputs) {
    if (input == kNone || !lowering.is_available(input) || lowering.is_constant(input)) continue;
    if (lowering.graph().only_user(input) != node) continue;
    std::optional<SoftmaxFront> front = find_softmax_front(lowering, input);
    if (front) return lower_softmax_front(lowering, input, *front);
  }
  if (lower_row_group(lowering, node)) return;
  PointwiseGroup(lowering, node).lower();
}

std::string refuse_cast(const Graph& graph, const Node& node) {
  return is_pointwise(graph, node) ? "" : refuse_exact(graph, node);
}

void lower_cast(Lowering& lowering, int node) {
  if (!is_pointwise(lowering.graph(), lowering.graph().nodes[node])) {
    return lower_exact(lowering, node);
  }
  PointwiseGroup(lowering, node).lower();
}

}  // namespace tenon::onednn
