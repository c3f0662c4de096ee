// SPDX-License-Identifier: Apache-2.0
#include "centred_products.hpp"

namespace tenon::onednn {
namespace {

const Node* producer_of(const Graph& graph, int value, const char* op) {
  int producer = value == kNone ? kNone : graph.values[value].producer;
  if (producer == kNone || graph.nodes[producer].op != op) return nullptr;
  return &graph.nodes[producer];
}

bool reduces_only(const Graph& graph, const Node& mean, int64_t axis) {
  Dims axes = mean.integers("axes");
  if (mean.input(1) != kNone) {
    const Value& constant = graph.values[mean.inputs[1]];
    if (constant.data == nullptr || constant.type != ElementType::kI64) return false;
    const int64_t* data = static_cast<const int64_t*>(constant.data);
    axes.assign(data, data + constant.count());
  }
  return axes.size() == 1 && (axes[0] == axis || axes[0] == axis - 2);
}

// Whether `value` is x less its means over `axis`, of a matrix x.
bool is_centred(const Graph& graph, int value, int x, int64_t axis) {
  const Node* difference = producer_of(graph, value, "Sub");
  if (difference == nullptr || difference->inputs[0] != x) return false;
  const Node* mean = producer_of(graph, difference->inputs[1], "ReduceMean");
  if (mean == nullptr || mean->inputs[0] != x || !reduces_only(graph, *mean, axis)) return false;
  // [n] without the axis is a row: means of columns broadcast as they should, means of rows do not.
  Dims kept = graph.values[x].dims;
  kept[static_cast<size_t>(axis)] = 1;
  const Dims& dims = graph.values[mean->outputs[0]].dims;
  return dims == kept || (axis == 0 && dims == Dims{kept[1]});
}

// What the value is the transpose of; kNone when it is not.
int transposed_of(const Graph& graph, int value) {
  const Node* transpose = producer_of(graph, value, "Transpose");
  if (transpose == nullptr || graph.values[value].dims.size() != 2) return kNone;
  return transpose->integers("perm", {1, 0}) == Dims{1, 0} ? transpose->inputs[0] : kNone;
}

void centre(Graph& graph, Node& product, size_t transposed) {
  int a = transposed_of(graph, product.inputs[transposed]);
  int b = product.inputs[1 - transposed];
  if (a == kNone || graph.values[b].dims != graph.values[a].dims) return;
  const auto axis = static_cast<int64_t>(transposed);  // that the product sums over
  const Dims& dims = graph.values[a].dims;
  if (!pays_to_halve(dims[1 - transposed], dims[transposed])) return;
  bool is_a = is_centred(graph, a, b, axis);
  if (!is_a && !is_centred(graph, b, a, axis)) return;
  int centred = is_a ? a : b;
  product.op = "Gemm";
  product.inputs = {centred, centred};
  product.attributes = {{transposed == 0 ? "transA" : "transB", int64_t{1}}};
}

}  // namespace

void centre_products(Graph& graph) {
  for (Node& node : graph.nodes) {
    for (size_t transposed : {0, 1}) {
      if (node.op == "MatMul") centre(graph, node, transposed);
    }
  }
  graph.finish();
}

}  // namespace tenon::onednn
