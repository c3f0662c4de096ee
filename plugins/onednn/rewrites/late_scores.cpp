// SPDX-License-Identifier: Apache-2.0
#include "late_scores.hpp"

#include <algorithm>
#include <utility>

namespace tenon::onednn {
namespace {

bool may_stand_between(const Node& node) {
  return node.op == "Mul" || node.op == "Div" || node.op == "Add";
}

// From a product to its Softmax, and the node that alone reads that; empty when `first` is no such
// product.
std::vector<int> scores_from(const Graph& graph, int first) {
  if (graph.nodes[first].op != "MatMul") return {};
  std::vector<int> chain = {first};
  for (;;) {
    int next = graph.only_user(graph.nodes[chain.back()].outputs[0]);
    if (next == kNone) return {};
    const Node& node = graph.nodes[next];
    chain.push_back(next);
    if (node.op == "Softmax") break;
    if (!may_stand_between(node)) return {};
  }
  int reader = graph.only_user(graph.nodes[chain.back()].outputs[0]);
  if (reader == kNone || graph.nodes[reader].op != "MatMul") return {};
  chain.push_back(reader);
  return chain;
}

}  // namespace

void delay_scores(Graph& graph) {
  std::vector<int> waits_for(graph.nodes.size(), kNone);  // the node that it runs in front of
  bool any = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    std::vector<int> chain = scores_from(graph, static_cast<int>(i));
    for (size_t k = 0; k + 1 < chain.size(); ++k)
      waits_for[chain[k]] = chain.back();
    any |= !chain.empty();
  }
  if (!any) return;
  std::vector<std::vector<Node>> delayed(graph.nodes.size());
  std::vector<Node> ordered;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    if (waits_for[i] != kNone) {
      delayed[waits_for[i]].push_back(std::move(node));
      continue;
    }
    std::move(delayed[i].begin(), delayed[i].end(), std::back_inserter(ordered));
    ordered.push_back(std::move(node));
  }
  graph.reorder(std::move(ordered));
}

}  // namespace tenon::onednn
