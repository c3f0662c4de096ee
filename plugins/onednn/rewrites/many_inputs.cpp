// SPDX-License-Identifier: Apache-2.0
#include "many_inputs.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "kernels/pointwise_program.h"
#include "lowering/pointwise_group.hpp"

namespace tenon::onednn {
namespace {

bool is_leaf(const tn_expr_node& e) {
  return e.op == TN_EXPR_INPUT || e.op == TN_EXPR_CONST;
}
int arity(const tn_expr_node& e) {
  return is_leaf(e) ? 0 : kernels::arity(e.op);
}

// A subexpression. What others read of it stays in the program too and is computed twice.
struct Part {
  uint32_t root = 0;
  std::set<uint32_t> nodes;      // of the program, leaves among them
  std::set<uint32_t> positions;  // inputs that it reads
};

class Cutting {
 public:
  Cutting(Graph& graph, Node& node) : graph_(graph), node_(node) {}

  // Ends, as each part makes a leaf of what was none.
  void run() {
    while (node_.inputs.size() > kMostPointwiseInputs) {
      std::optional<Part> part = largest();
      if (!part) return;
      take_out(*part);
    }
  }

 private:
  uint32_t operand(const tn_expr_node& e, int i) const { return i == 0 ? e.a : i == 1 ? e.b : e.c; }

  std::optional<Part> largest() const {
    std::optional<Part> best;
    for (uint32_t i = 0; i + 1 < node_.expr.size(); ++i) {
      std::optional<Part> part = part_at(i);
      if (!part || part->positions.size() < 2) continue;
      if (!best || part->positions.size() > best->positions.size()) best = std::move(part);
    }
    return best;
  }

  std::optional<Part> part_at(uint32_t root) const {
    if (is_leaf(node_.expr[root])) return {};
    Part part{.root = root, .nodes = {root}, .positions = {}};
    std::vector<uint32_t> waiting = {root};
    while (!waiting.empty()) {
      const tn_expr_node& e = node_.expr[waiting.back()];
      waiting.pop_back();
      if (e.op == TN_EXPR_INPUT) part.positions.insert(e.a);
      if (part.positions.size() > kMostPointwiseInputs) return {};
      for (int i = 0; i < arity(e); ++i)
        if (part.nodes.insert(operand(e, i)).second) waiting.push_back(operand(e, i));
    }
    return part;
  }

  // The part as a node in front, and its value as an input in its place.
  void take_out(const Part& part) {
    Node front{.op = node_.op + ".part", .name = node_.name};
    front.domain = node_.domain;
    front.bits = node_.bits;
    front.expr = moved(part.nodes, node_.inputs, front.inputs);
    front.outputs = {graph_.add_value(value_of(front))};
    std::vector<int> inputs = node_.inputs;
    inputs.push_back(front.outputs[0]);
    node_.expr[part.root] = {TN_EXPR_INPUT, static_cast<uint32_t>(inputs.size()) - 1, 0, 0, 0};
    std::set<uint32_t> needed;
    mark(static_cast<uint32_t>(node_.expr.size()) - 1, needed);
    node_.inputs.clear();
    node_.expr = moved(needed, inputs, node_.inputs);
    graph_.add_node(std::move(front));
  }

  void mark(uint32_t root, std::set<uint32_t>& needed) const {
    std::vector<uint32_t> waiting = {root};
    while (!waiting.empty()) {
      uint32_t at = waiting.back();
      waiting.pop_back();
      if (!needed.insert(at).second) continue;
      for (int i = 0; i < arity(node_.expr[at]); ++i)
        waiting.push_back(operand(node_.expr[at], i));
    }
  }

  // These nodes as a program of its own, with the inputs that it reads.
  std::vector<tn_expr_node> moved(const std::set<uint32_t>& nodes,
                                  const std::vector<int>& from,
                                  std::vector<int>& inputs) const {
    std::vector<uint32_t> place(node_.expr.size(), 0), position(from.size(), 0);
    std::vector<tn_expr_node> out;
    std::vector<bool> is_known(from.size(), false);
    for (uint32_t i : nodes) {
      tn_expr_node e = node_.expr[i];
      place[i] = static_cast<uint32_t>(out.size());
      if (e.op == TN_EXPR_INPUT) {
        if (!is_known[e.a]) {
          position[e.a] = static_cast<uint32_t>(inputs.size());
          inputs.push_back(from[e.a]);
          is_known[e.a] = true;
        }
        e.a = position[e.a];
      } else if (e.op != TN_EXPR_CONST) {
        e = {e.op, place[e.a], place[e.b], place[e.c], 0};
      }
      out.push_back(e);
    }
    return out;
  }

  // Sums and the like are kept as they are computed: 16-bit floats in f32.
  Value value_of(const Node& part) const {
    Value made;
    made.name = graph_.values[node_.outputs[0]].name + "/part";
    made.type = ElementType::kBool;
    for (int input : part.inputs) {
      const Value& v = graph_.values[input];
      if (v.type != ElementType::kBool) made.type = v.type;
      if (v.dims.size() > made.dims.size())
        made.dims.insert(made.dims.begin(), v.dims.size() - made.dims.size(), 1);
      size_t shift = made.dims.size() - v.dims.size();
      for (size_t i = 0; i < v.dims.size(); ++i)
        if (v.dims[i] != 1) made.dims[i + shift] = v.dims[i];
    }
    bool is_short = made.type == ElementType::kBf16 || made.type == ElementType::kF16;
    if (is_short) made.type = ElementType::kF32;
    return made;
  }

  Graph& graph_;
  Node& node_;
};

}  // namespace

void cut_many_inputs(Graph& graph) {
  std::vector<Node> before = std::move(graph.nodes);
  graph.nodes.clear();
  for (Node& node : before) {
    if (!node.expr.empty()) Cutting(graph, node).run();
    graph.add_node(std::move(node));
  }
  graph.finish();
}

}  // namespace tenon::onednn
