// SPDX-License-Identifier: Apache-2.0
// Activations that oneDNN knows: one row each.

#include <cmath>
#include <limits>

#include "epilogue.hpp"

namespace tenon::onednn {
namespace {

using A = dnnl::algorithm;
using Row = std::optional<Eltwise> (*)(const Graph&, const Node&);

template <A kAlgorithm>
std::optional<Eltwise> plain(const Graph&, const Node&) {
  return Eltwise{kAlgorithm, 0, 0};
}

float bound(const Graph& graph, int value, float fallback, bool* is_known) {
  if (value == kNone) return fallback;
  const Value& constant = graph.values[value];
  if (constant.data == nullptr || constant.type != ElementType::kF32) {
    *is_known = false;
    return fallback;
  }
  return *static_cast<const float*>(constant.data);
}

std::optional<Eltwise> clip(const Graph& graph, const Node& node) {
  bool is_known = true;
  constexpr float kUnbounded = std::numeric_limits<float>::infinity();
  float low = bound(graph, node.input(1), -kUnbounded, &is_known);
  float high = bound(graph, node.input(2), kUnbounded, &is_known);
  if (!is_known || !(low <= high)) return std::nullopt;
  return Eltwise{A::eltwise_clip, low, high};
}

std::optional<Eltwise> leaky_relu(const Graph&, const Node& node) {
  return Eltwise{A::eltwise_relu, static_cast<float>(node.real("alpha", 0.01)), 0};
}

std::optional<Eltwise> elu(const Graph&, const Node& node) {
  return Eltwise{A::eltwise_elu, static_cast<float>(node.real("alpha", 1.0)), 0};
}

std::optional<Eltwise> gelu(const Graph&, const Node& node) {
  bool is_tanh = node.text("approximate", "none") == "tanh";
  return Eltwise{is_tanh ? A::eltwise_gelu_tanh : A::eltwise_gelu_erf, 0, 0};
}

std::optional<Eltwise> hard_swish(const Graph&, const Node&) {
  return Eltwise{A::eltwise_hardswish, 1.0F / 6.0F, 0.5F};
}

std::optional<Eltwise> hard_sigmoid(const Graph&, const Node& node) {
  return Eltwise{A::eltwise_hardsigmoid, static_cast<float>(node.real("alpha", 0.2)),
                 static_cast<float>(node.real("beta", 0.5))};
}

std::optional<Eltwise> swish(const Graph&, const Node& node) {
  return Eltwise{A::eltwise_swish, static_cast<float>(node.real("alpha", 1.0)), 0};
}

std::optional<Eltwise> softplus(const Graph&, const Node&) {
  return Eltwise{A::eltwise_soft_relu, 1, 0};
}

std::optional<Eltwise> negate(const Graph&, const Node&) {
  return Eltwise{A::eltwise_linear, -1, 0};
}

struct EltwiseRow {
  const char* op;
  Row make;
};
constexpr EltwiseRow kRows[] = {
    {"Relu", plain<A::eltwise_relu>},
    {"LeakyRelu", leaky_relu},
    {"Clip", clip},
    {"Sigmoid", plain<A::eltwise_logistic>},
    {"Tanh", plain<A::eltwise_tanh>},
    {"Elu", elu},
    {"Gelu", gelu},
    {"HardSwish", hard_swish},
    {"HardSigmoid", hard_sigmoid},
    {"Swish", swish},
    {"Softplus", softplus},
    {"Mish", plain<A::eltwise_mish>},
    {"Exp", plain<A::eltwise_exp>},
    {"Sqrt", plain<A::eltwise_sqrt>},
    {"Abs", plain<A::eltwise_abs>},
    {"Neg", negate},
};

}  // namespace

std::optional<Eltwise> find_eltwise(const Graph& graph, const Node& node) {
  for (const EltwiseRow& row : kRows) {
    if (node.op == row.op) return row.make(graph, node);
  }
  return std::nullopt;
}

}  // namespace tenon::onednn
