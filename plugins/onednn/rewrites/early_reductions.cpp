// SPDX-License-Identifier: Apache-2.0
#include "early_reductions.hpp"

#include <algorithm>
#include <utility>

namespace tenon::onednn {
namespace {

class Ordering {
 public:
  explicit Ordering(Graph& graph) : graph_(graph), missing_(graph.nodes.size()) {
    is_placed_.assign(graph.nodes.size(), false);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (int input : graph.nodes[i].inputs)
        missing_[i] += input != kNone && graph.values[input].producer != kNone;
    }
  }

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_placed_[i]) place(static_cast<int>(i));
    }
    std::vector<Node> ordered;
    for (int index : order_)
      ordered.push_back(std::move(graph_.nodes[index]));
    graph_.reorder(std::move(ordered));
  }

 private:
  bool reduces(const Node& node) const {
    if (node.op.compare(0, 6, "Reduce") != 0 || node.inputs[0] == kNone) return false;
    return graph_.values[node.outputs[0]].count() < graph_.values[node.inputs[0]].count();
  }

  void place(int first) {
    std::vector<int> waiting = {first};
    while (!waiting.empty()) {
      int index = waiting.back();
      waiting.pop_back();
      is_placed_[index] = true;
      order_.push_back(index);
      for (int output : graph_.nodes[index].outputs) {
        if (output == kNone) continue;
        for (int user : graph_.values[output].users) {
          bool is_ready = --missing_[user] == 0;
          if (is_ready && reduces(graph_.nodes[user])) waiting.push_back(user);
        }
      }
    }
  }

  Graph& graph_;
  std::vector<int> missing_;  // inputs of each node that no placed node has made, one for each use
  std::vector<bool> is_placed_;
  std::vector<int> order_;
};

}  // namespace

void reduce_early(Graph& graph) {
  Ordering(graph).run();
}

}  // namespace tenon::onednn
