// SPDX-License-Identifier: Apache-2.0
#include "exact_numbers.hpp"

#include <algorithm>
#include <string_view>

namespace tenon::onednn {
namespace {

constexpr std::string_view kMovers[] = {"Concat", "Expand",    "Flatten",  "Gather", "Identity",
                                        "Pad",    "Reshape",   "Slice",    "Split",  "Squeeze",
                                        "Tile",   "Transpose", "Unsqueeze"};

bool is_real_or_bool(const Value& value) {
  return is_real_type(value.type) || value.type == ElementType::kBool;
}

bool computes_exactly(const Node& node) {
  return is_elementwise(node) || std::ranges::count(kMovers, node.op) > 0;
}

bool makes_integers(const Graph& graph, const Node& node) {
  const bool is_cast = node.op == "Cast" || node.op == "CastLike";
  return is_cast && node.output(0) != kNone && !is_real_or_bool(graph.value(node.outputs[0]));
}

}  // namespace

void mark_exact_numbers(Graph& graph) {
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const bool has_exact = std::ranges::any_of(
        node.outputs, [&](int output) { return output != kNone && graph.value(output).is_exact; });
    if (!makes_integers(graph, node) && !(has_exact && computes_exactly(node))) continue;
    for (int input : node.inputs) {
      if (input == kNone || !is_real_or_bool(graph.value(input))) continue;
      const int producer = graph.value(input).producer;
      if (producer == kNone || computes_exactly(graph.node(producer)))
        graph.values[static_cast<size_t>(input)].is_exact = true;
    }
  }
}

}  // namespace tenon::onednn
