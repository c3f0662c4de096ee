// SPDX-License-Identifier: Apache-2.0
#include "checked_indices.hpp"

#include <algorithm>

namespace tenon::onednn {
namespace {

// The value that has the same elements in the same order.
int source_of(const Graph& graph, int value) {
  constexpr std::string_view kSame[] = {"Unsqueeze", "Squeeze", "Reshape", "Flatten", "Identity"};
  for (;;) {
    const int producer = graph.value(value).producer;
    if (producer == kNone || std::ranges::count(kSame, graph.node(producer).op) == 0) return value;
    value = graph.node(producer).inputs[0];
  }
}

}  // namespace

bool has_checked_indices(const Graph& graph, const Node& scatter) {
  if (scatter.op != "ScatterND") return false;
  const Dims& dims = graph.value(scatter.inputs[0]).dims;
  const Dims& tuples = graph.value(scatter.inputs[1]).dims;
  if (dims.empty() || tuples.empty() || tuples.back() != 1) return false;
  const int indices = source_of(graph, scatter.inputs[1]);
  const int place = graph.value(scatter.outputs[0]).producer;
  for (int i = 0; i < place; ++i) {
    const Node& node = graph.node(i);
    if (node.op != "Gather" || source_of(graph, node.inputs[1]) != indices) continue;
    const Dims& table = graph.value(node.inputs[0]).dims;
    const int64_t axis = positive_axis(node.integer("axis", 0), table.size());
    if (table[static_cast<size_t>(axis)] == dims[0]) return true;
  }
  return false;
}

}  // namespace tenon::onednn
