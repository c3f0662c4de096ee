// SPDX-License-Identifier: Apache-2.0
#include "handlers.hpp"
#include "int4_product.hpp"

namespace tenon::onednn {

std::string refuse_matmul(const Graph& graph, const Node& node) {
  for (int i : {0, 1}) {
    const Value& value = graph.values[node.inputs[i]];
    if (value.type != ElementType::kF32) return "only f32 inputs (int8 through DequantizeLinear)";
    if (value.dims.empty()) return "a scalar";
    if (value.dims.size() > 6) return "more than six axes";
    if (value.count() == 0) return "empty tensor";
  }
  return {};
}

void lower_matmul(Lowering& lowering, int node) {
  const Node& matmul = lowering.graph().nodes[node];
  const Product product{.node = node, .a = matmul.inputs[0], .b = matmul.inputs[1]};
  if (!lower_packed_product(lowering, product)) lower_scores(lowering, product);
}

std::string refuse_gemm(const Graph& graph, const Node& node) {
  if (std::string why = refuse_matmul(graph, node); !why.empty()) return why;
  if (node.input(2) == kNone) return {};
  const Value& bias = graph.values[node.input(2)];
  if (bias.type != ElementType::kF32) return "only f32 for C";
  return {};
}

void lower_gemm(Lowering& lowering, int node) {
  const Node& gemm = lowering.graph().nodes[node];
  const Product product{.node = node,
                        .a = gemm.inputs[0],
                        .b = gemm.inputs[1],
                        .transpose_a = gemm.integer("transA", 0) != 0,
                        .transpose_b = gemm.integer("transB", 0) != 0,
                        .bias = gemm.input(2)};
  if (!lower_packed_product(lowering, product)) lower_product(lowering, product);
}

}  // namespace tenon::onednn
