// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes are products, and of what: what multiply-adds are counted of. The columns of an
// operator's row say it: a role that computes, or a coupling of products. Operators that work on
// quantized values themselves do not.

#include <vector>

#include "tenon/sdk/coupling.hpp"
#include "tenon/sdk/graph.hpp"

namespace tenon {

// The operands that a node multiplies with each other; none: it is no product.
inline std::vector<Value> multiplied(Node node) {
  const tn_op_columns* columns = node.columns();
  if (!columns) return {};
  const Stated stated(node);
  std::vector<Value> out;
  auto add = [&](Value value) {
    if (value) out.push_back(value);
  };
  switch (columns->coupling) {
    case TN_COUPLING_MATRICES:
      return {stated.input("a"), stated.input("b")};
    case TN_COUPLING_ATTENTION:
      return {stated.input("q"), stated.input("k"), stated.input("v")};
    case TN_COUPLING_RECURRENT:
      return {node.input(0), stated.input("w"), stated.input("r")};
    case TN_COUPLING_EQUATION:
      return node.n_inputs() > 1 ? node.inputs() : out;
    default:
      break;
  }
  for (uint64_t i = 0; columns->quant == TN_QUANT_COMPUTE && i < columns->n_products; ++i) {
    if (i == 0) add(node.input(static_cast<uint64_t>(columns->products[i].act)));
    add(node.input(static_cast<uint64_t>(columns->products[i].weight)));
  }
  return out;
}

// By the row's own cost; nothing where that or a size is not known.
inline std::optional<double> multiply_adds(Node node) {
  const tn_op* row = node.row();
  if (!row || !row->cost || !node.output().type().is_static()) return std::nullopt;
  double flops = 0, bytes = 0;
  Status failed(row->cost(row->self, node.graph, node.id, &flops, &bytes));
  return failed.ok() ? std::optional(flops / 2) : std::nullopt;
}

// Whether nodes make it of constants alone, as the transposed weight of a linear layer before
// constants are folded. What is dequantized stays so.
inline bool is_computed_of_constants(Value value, int depth = 8) {
  Node node = value.producer();
  if (!node || node.n_inputs() == 0 || depth == 0) return false;
  const tn_op_columns* columns = node.columns();
  if (columns && columns->quant == TN_QUANT_DEQUANTIZE) return false;
  for (Value input : node.inputs())
    if (input && !input.is_constant() && !is_computed_of_constants(input, depth - 1)) return false;
  return true;
}

// Why passes leave a layer for whose weight this holds.
inline constexpr const char* kComputedWeight =
    "its weight is computed from constants: apply fusion.default first";

}  // namespace tenon
