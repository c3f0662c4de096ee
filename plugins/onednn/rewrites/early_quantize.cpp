// SPDX-License-Identifier: Apache-2.0
#include "early_quantize.hpp"

#include <algorithm>
#include <utility>

namespace tenon::onednn {
namespace {

class Moving {
 public:
  explicit Moving(Graph& graph) : graph_(graph), goes_behind_(graph.nodes.size(), kNone) {}

  void run() {
    const size_t count = graph_.nodes.size();
    for (size_t i = 0; i < count; ++i)
      if (has_one_scale(graph_.nodes[i])) move(static_cast<int>(i));
    if (!any_) return;
    std::vector<std::vector<int>> behind(count);
    for (size_t i = 0; i < count; ++i)
      if (goes_behind_[i] != kNone) behind[goes_behind_[i]].push_back(static_cast<int>(i));
    std::vector<Node> ordered;
    for (size_t i = 0; i < count; ++i) {
      if (goes_behind_[i] != kNone) continue;
      ordered.push_back(std::move(graph_.nodes[i]));
      for (int moved : behind[i])
        ordered.push_back(std::move(graph_.nodes[moved]));
    }
    graph_.reorder(std::move(ordered));
  }

 private:
  bool has_one_scale(const Node& node) const {
    if (node.op != "QuantizeLinear") return false;
    for (size_t i : {1, 2}) {
      const int value = node.input(i);
      if (value == kNone) continue;
      if (graph_.values[value].data == nullptr || graph_.values[value].count() != 1) return false;
    }
    return true;
  }

  bool is_read_once(int value) const {
    const Value& v = graph_.values[value];
    return v.producer != kNone && v.users.size() == 1 && v.n_outputs == 0;
  }

  // What makes a value that is read by moving its numbers, from the reader's side.
  std::vector<int> movers_behind(int value) const {
    std::vector<int> movers;
    while (is_read_once(value)) {
      const int maker = graph_.values[value].producer;
      const std::string& op = graph_.nodes[maker].op;
      if (op != "Transpose" && op != "Reshape") break;
      movers.push_back(maker);
      value = graph_.nodes[maker].inputs[0];
    }
    return movers;
  }

  void move(int quantize) {
    Node& node = graph_.nodes[quantize];
    const std::vector<int> movers = movers_behind(node.inputs[0]);
    if (movers.empty()) return;
    const int source = graph_.nodes[movers.back()].inputs[0];
    if (!is_read_once(source)) return;
    const int maker = graph_.values[source].producer;
    if (graph_.nodes[maker].op != "MatMul" && graph_.nodes[maker].op != "Add") return;
    const int result = node.outputs[0];
    const ElementType type = graph_.values[result].type;
    Value moved;
    moved.name = graph_.values[result].name;
    moved.type = type;
    moved.dims = graph_.values[source].dims;
    const int quantized = graph_.add_value(std::move(moved));
    node.inputs[0] = source;
    node.outputs[0] = quantized;
    graph_.nodes[movers.back()].inputs[0] = quantized;
    for (int mover : movers)
      graph_.values[graph_.nodes[mover].outputs[0]].type = type;
    graph_.nodes[movers.front()].outputs[0] = result;
    goes_behind_[quantize] = maker;
    any_ = true;
  }

  Graph& graph_;
  std::vector<int> goes_behind_;  // of a moved node: the node that makes what it reads
  bool any_ = false;
};

}  // namespace

void quantize_early(Graph& graph) {
  Moving(graph).run();
}

}  // namespace tenon::onednn
