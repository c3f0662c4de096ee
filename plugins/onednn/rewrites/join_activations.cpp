// SPDX-License-Identifier: Apache-2.0
#include "join_activations.hpp"

#include <algorithm>

namespace tenon::onednn {
namespace {

class Joining {
 public:
  explicit Joining(Graph& graph) : graph_(graph), gone_(graph.nodes.size(), false) {}

  void run() {
    const int count = static_cast<int>(graph_.nodes.size());
    for (int i = 0; i < count; ++i)
      if (is_training_norm(graph_.nodes[i])) join_relu(i);
    for (int i = 0; i < count; ++i)
      if (graph_.nodes[i].op == "tenon.BatchNormGrad") join_mask(i);
    graph_.drop(gone_);
  }

 private:
  static bool is_training_norm(const Node& node) {
    return node.op == "BatchNormalization" && node.integer("training_mode", 0) != 0;
  }

  bool is_zero(int value) const {
    return value != kNone && constant_number(graph_.values[value]) == 0.0;
  }

  void join_relu(int norm) {
    int user = graph_.only_user(graph_.nodes[norm].outputs[0]);
    if (user == kNone || graph_.nodes[user].op != "Relu") return;
    int y = graph_.nodes[user].outputs[0];
    graph_.nodes[norm].outputs[0] = y;
    graph_.nodes[norm].attributes.push_back({kFusedRelu, int64_t{y} + 1});
    graph_.values[y].producer = norm;
    gone_[user] = true;
  }

  // dy of the gradient is Where(y > 0, d, 0) with y of the norm that the Relu went into.
  void join_mask(int grad) {
    Node& node = graph_.nodes[grad];
    int masked = node.inputs[0];
    int where = graph_.values[masked].producer;
    if (where == kNone || graph_.only_user(masked) == kNone) return;
    if (graph_.nodes[where].op != "Where") return;
    const Node& choice = graph_.nodes[where];
    if (!is_zero(choice.inputs[2])) return;
    const Value& d = graph_.values[choice.inputs[1]];
    int mask = graph_.values[choice.inputs[0]].producer;
    if (d.dims != graph_.values[masked].dims || mask == kNone) return;
    const Node& greater = graph_.nodes[mask];
    if (greater.op != "Greater" || !is_zero(greater.inputs[1])) return;
    int norm = graph_.values[greater.inputs[0]].producer;
    if (norm == kNone || !is_training_norm(graph_.nodes[norm])) return;
    const Node& forward = graph_.nodes[norm];
    bool is_same = forward.integer(kFusedRelu, 0) != 0 && forward.inputs[0] == node.inputs[1] &&
                   forward.inputs[1] == node.inputs[2] &&
                   forward.real("epsilon", 1e-5) == node.real("epsilon", 1e-5);
    if (!is_same) return;
    node.inputs[0] = choice.inputs[1];
    node.attributes.push_back({kFusedRelu, forward.integer(kFusedRelu, 0)});
    gone_[where] = true;
    if (graph_.only_user(greater.outputs[0]) != kNone) gone_[mask] = true;
  }

  Graph& graph_;
  std::vector<bool> gone_;
};

}  // namespace

void join_activations(Graph& graph) {
  Joining(graph).run();
}

}  // namespace tenon::onednn
