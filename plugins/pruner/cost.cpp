// SPDX-License-Identifier: Apache-2.0
#include "cost.hpp"

#include "tenon/sdk/multiplied.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon::pruner {
namespace {

std::optional<double> macs_of(Graph graph, const Which& which) {
  double total = 0;
  for (Node node : graph.nodes()) {
    if (!which(node.id) || multiplied(node).empty()) continue;
    const tn_op* row = node.row();
    if (!row || !row->cost) continue;
    const std::optional<double> macs = multiply_adds(node);
    if (!macs) return std::nullopt;
    total += *macs;
  }
  return total;
}

}  // namespace

OwnedGraph with_known_sizes(const tn_graph* raw) {
  std::vector<Type> types;
  for (Value input : Graph{raw}.inputs()) {
    types.push_back(input.type());
    types.back().symbols.clear();
    for (int64_t& dim : types.back().dims)
      if (dim < 0) dim = 1;
  }
  std::vector<TypeView> views(types.begin(), types.end());
  std::vector<const tn_type*> pointers;
  for (const TypeView& one : views)
    pointers.push_back(one.get());
  tn_graph* bound = nullptr;
  Status failed(services.graph->bind(raw, pointers.data(), pointers.size(), &bound));
  return OwnedGraph::take(failed.ok() ? bound : nullptr);
}

std::optional<double> macs_of(const tn_graph* graph, const Which& which) {
  OwnedGraph known = with_known_sizes(graph);
  return known.get() ? macs_of(known.view(), which) : std::nullopt;
}

Cost cost_of(const tn_graph* graph) {
  Cost out;
  for (Value constant : Graph{graph}.constants()) {
    if (!is_float(constant.dtype())) continue;
    Tensor tensor = constant.constant();
    DLTensor t = tensor.dl();
    int64_t n = element_count(t);
    out.parameters += n;
    with_numbers(t, [&](const auto* numbers) {
      for (int64_t i = 0; i < n; ++i)
        out.nonzero += numbers[i] != 0;
    });
  }
  out.macs = macs_of(graph, [](tn_node_id) { return true; });
  return out;
}

}  // namespace tenon::pruner
