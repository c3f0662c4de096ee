// SPDX-License-Identifier: Apache-2.0
#include "state_layout.hpp"

#include <numeric>

#include "view.hpp"

namespace tenon::onednn {

namespace {

// Values in sets that grow together (disjoint sets, paths halved).
class Ties {
 public:
  explicit Ties(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }

  int find(int value) {
    size_t at = static_cast<size_t>(value);
    while (parent_[at] != static_cast<int>(at)) {
      parent_[at] = parent_[static_cast<size_t>(parent_[at])];
      at = static_cast<size_t>(parent_[at]);
    }
    return static_cast<int>(at);
  }
  void tie(int a, int b) { parent_[static_cast<size_t>(find(a))] = find(b); }

 private:
  std::vector<int> parent_;
};

bool keeps_places(const Node& node) {
  return is_elementwise(node) || node.op == "Identity";
}

// The weight that a node reads or whose gradient it makes; kNone for other nodes.
int convolution_weight(const Node& node) {
  if (node.op == "Conv" || node.op == "ConvTranspose") return node.inputs[1];
  return node.op == "tenon.ConvWeightGrad" ? node.outputs[0] : kNone;
}

}  // namespace

std::vector<bool> kept_channels_last(const Graph& graph) {
  Ties ties(graph.values.size());
  for (const Node& node : graph.nodes) {
    if (!keeps_places(node)) continue;
    const Dims& dims = graph.values[static_cast<size_t>(node.outputs[0])].dims;
    for (int input : node.inputs) {
      bool is_full = input != kNone && graph.values[static_cast<size_t>(input)].dims == dims;
      if (is_full) ties.tie(input, node.outputs[0]);
    }
  }
  for (const auto& [before, after] : graph.states)
    ties.tie(before, after);
  std::vector<bool> has_state(graph.values.size(), false);
  std::vector<bool> has_weight(graph.values.size(), false);
  for (const auto& [before, after] : graph.states)
    has_state[static_cast<size_t>(ties.find(before))] = true;
  for (const Node& node : graph.nodes) {
    int weight = convolution_weight(node);
    if (weight != kNone) has_weight[static_cast<size_t>(ties.find(weight))] = true;
  }
  std::vector<bool> is_last(graph.values.size(), false);
  for (size_t value = 0; value < is_last.size(); ++value) {
    size_t set = static_cast<size_t>(ties.find(static_cast<int>(value)));
    is_last[value] = has_state[set] && has_weight[set];
  }
  return is_last;
}

Dims kept_strides(const Graph& graph, int value) {
  const Dims& dims = graph.values[static_cast<size_t>(value)].dims;
  const Dims row_major = row_major_strides(dims);
  const Dims last = channels_last_strides(dims);
  // Where both are the same bytes the state is row-major, and no plan need be asked.
  if (dims.size() < 3 || same_strides(dims, last, row_major)) return row_major;
  return kept_channels_last(graph)[static_cast<size_t>(value)] ? last : row_major;
}

}  // namespace tenon::onednn
