// SPDX-License-Identifier: Apache-2.0
#include "late_casts.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "graph/reductions.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kLeastBytes = int64_t{256} << 10;  // less is not worth a node
constexpr int64_t kSmall = 16;         // times smaller than the result: costs nothing to read again
constexpr size_t kMostOperations = 4;  // of a program that runs anew

// Each of them once, also what reads it twice.
std::vector<int> readers_of(const Value& value) {
  std::vector<int> readers = value.users;
  std::ranges::sort(readers);
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
}

// A pass over the value's elements that it can be a part of.
bool takes_along(const Graph& graph, int reader, int value) {
  const Node& node = graph.nodes[size_t(reader)];
  if (reduced_last_axes(graph, node) > 0) return true;
  return !node.expr.empty() && node.op != "Cast" && !node.outputs.empty() &&
         node.outputs[0] != kNone && graph.value(node.outputs[0]).dims == graph.value(value).dims;
}

bool is_cast_of_booleans(const Graph& graph, int value) {
  const int producer = graph.value(value).producer;
  if (producer == kNone || graph.nodes[size_t(producer)].op != "Cast") return false;
  return graph.value(graph.nodes[size_t(producer)].inputs[0]).type == ElementType::kBool;
}

bool is_repeated(const Graph& graph, const Node& node) {
  if (!is_elementwise(node) || node.outputs.size() != 1 || node.outputs[0] == kNone) return false;
  const Value& result = graph.value(node.outputs[0]);
  auto is_cheap = [&](int input) {
    if (input == kNone) return true;
    const Value& read = graph.value(input);
    return read.type == ElementType::kBool || read.count() * kSmall <= result.count() ||
           is_cast_of_booleans(graph, input);
  };
  return node.expr.size() <= kMostOperations + node.inputs.size() &&
         result.type == ElementType::kF32 && result.bytes() >= kLeastBytes &&
         result.n_outputs == 0 && readers_of(result).size() > 1 &&
         std::ranges::all_of(node.inputs, is_cheap) &&
         std::ranges::all_of(
             result.users, [&](int reader) { return takes_along(graph, reader, node.outputs[0]); });
}

// Whether there was anything to repeat.
bool repeat_in_front_of_readers(Graph& graph) {
  const size_t n_nodes = graph.nodes.size();
  std::vector<std::vector<Node>> in_front(n_nodes);
  std::vector<bool> is_gone(n_nodes, false);
  for (size_t i = 0; i < n_nodes; ++i) {
    if (!is_repeated(graph, graph.nodes[i])) continue;
    const int value = graph.nodes[i].outputs[0];
    is_gone[i] = true;
    const std::vector<int> readers = readers_of(graph.value(value));
    for (size_t k = 0; k < readers.size(); ++k) {
      Node again = graph.nodes[i];
      again.name += "/" + std::to_string(k);
      Value made = graph.value(value);
      made.name += "/" + std::to_string(k);
      again.outputs[0] = graph.add_value(std::move(made));
      std::vector<int>& inputs = graph.nodes[size_t(readers[k])].inputs;
      std::ranges::replace(inputs, value, again.outputs[0]);
      in_front[size_t(readers[k])].push_back(std::move(again));
    }
  }
  if (std::ranges::none_of(is_gone, [](bool gone) { return gone; })) return false;
  std::vector<Node> ordered;
  for (size_t i = 0; i < n_nodes; ++i) {
    std::ranges::move(in_front[i], std::back_inserter(ordered));
    if (!is_gone[i]) ordered.push_back(std::move(graph.nodes[i]));
  }
  graph.reorder(std::move(ordered));
  return true;
}

}  // namespace

void delay_casts(Graph& graph) {
  // What is repeated reads its own operands more often than before.
  while (repeat_in_front_of_readers(graph)) {
  }
}

}  // namespace tenon::onednn
