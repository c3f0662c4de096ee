// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's MatMulNBits with 4 bits.

#include "handlers.hpp"
#include "int4_product.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kRealRows = 1, kInt8Rows = 4;  // of accuracy_level

}  // namespace

std::string refuse_matmul_n_bits(const Graph& graph, const Node& node) {
  const Value& a = graph.values[node.inputs[0]];
  if (a.type != ElementType::kF32) return "only f32 for A";
  if (a.dims.empty() || a.count() == 0) return "A without elements or axes";
  std::string why;
  const std::optional<Int4Matrix> matrix = int4_matrix_of_n_bits(graph, node, &why);
  if (!matrix) return why;
  if (a.dims.back() != matrix->k) return "A has other columns than K says";
  return is_known_row(graph, node.input(5), matrix->n) ? "" : "the bias is no known row";
}

void lower_matmul_n_bits(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  std::string why;
  const Int4Matrix matrix = *int4_matrix_of_n_bits(lowering.graph(), node, &why);
  const int64_t level = node.integer("accuracy_level", 0);
  lower_int4_product(lowering, {.node = index, .a = node.inputs[0], .bias = node.input(5)}, matrix,
                     level == kInt8Rows   ? Int4Rows::kInt8
                     : level == kRealRows ? Int4Rows::kReal
                                          : Int4Rows::kAsAsked);
}

}  // namespace tenon::onednn
