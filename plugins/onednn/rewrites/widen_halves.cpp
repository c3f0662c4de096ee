// SPDX-License-Identifier: Apache-2.0
#include "widen_halves.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/half.hpp"

#include "lowering/handler.hpp"

namespace tenon::onednn {
namespace {

bool is_half(const Value& value) {
  return value.is_known && (value.type == ElementType::kBf16 || value.type == ElementType::kF16);
}

bool is_widened(const Graph& graph, const Node& node) {
  if ((find_handler(node.op).takes & kWidened) == 0) return false;
  auto is_half_value = [&](int v) { return v != kNone && is_half(graph.value(v)); };
  return std::ranges::any_of(node.inputs, is_half_value) ||
         std::ranges::any_of(node.outputs, is_half_value);
}

// In the graph or in a body of it.
bool has_widened(const Graph& graph) {
  return std::ranges::any_of(graph.nodes,
                             [&](const Node& node) { return is_widened(graph, node); }) ||
         std::ranges::any_of(graph.bodies,
                             [](const auto& body) { return has_widened(*body.second); });
}

class Widening {
 public:
  explicit Widening(Graph& graph) : graph_(graph) {}

  void run() {
    std::vector<Node> before = std::move(graph_.nodes);
    for (Node& node : before) {
      if (is_widened(graph_, node)) {
        widen(std::move(node));
      } else {
        ordered_.push_back(std::move(node));
      }
    }
    graph_.reorder(std::move(ordered_));
  }

 private:
  void widen(Node node) {
    for (int& input : node.inputs)
      if (input != kNone && is_half(graph_.value(input))) input = widened(input);
    std::vector<Node> behind;
    for (int& output : node.outputs) {
      if (output == kNone || !is_half(graph_.value(output))) continue;
      const int exact = graph_.add_f32_like(output, "f32");
      behind.push_back(graph_.cast_node(exact, output));
      output = exact;
    }
    ordered_.push_back(std::move(node));
    std::ranges::move(behind, std::back_inserter(ordered_));
  }

  // The value in f32; made once for all that read it.
  int widened(int value) {
    auto [found, is_new] = widened_.try_emplace(value, kNone);
    if (!is_new) return found->second;
    const int made = graph_.add_f32_like(value, "f32");
    found->second = made;
    if (graph_.value(value).data != nullptr) {
      widen_constant(value, made);
    } else {
      ordered_.push_back(graph_.cast_node(value, made));
    }
    return made;
  }

  void widen_constant(int value, int made) {
    const Value& from = graph_.value(value);
    const auto n = static_cast<size_t>(from.count());
    auto numbers = std::make_shared<std::vector<float>>(n);
    const auto* bits = static_cast<const uint16_t*>(from.data);
    const bool is_bf16 = from.type == ElementType::kBf16;
    for (size_t i = 0; i < n; ++i)
      (*numbers)[i] = is_bf16 ? float_of_bfloat(bits[i]) : float_of_half(bits[i]);
    graph_.set_numbers(made, std::move(numbers));
  }

  Graph& graph_;
  std::vector<Node> ordered_;
  std::unordered_map<int, int> widened_;
};

}  // namespace

void widen_halves(Graph& graph) {
  if (!has_widened(graph)) return;
  Widening(graph).run();
  for (auto& [node, body] : graph.bodies) {
    auto own = std::make_shared<Graph>(*body);
    widen_halves(*own);
    body = std::move(own);
  }
}

}  // namespace tenon::onednn
