// SPDX-License-Identifier: Apache-2.0
// Before:  y = Transpose(MatMul(a, b)) of the last two axes, where a or b is such a Transpose too:
//          the gradient of a weight that is kept [out, in].
// After:   y = MatMul(Transpose(b), Transpose(a)); of a Transpose that is there what it reads.
// Formula: (a b)^T = b^T a^T.
// Needs:   the product is used once; the operands have one rank and one batch; neither is a
//          constant or quantized, whose side backends look at.
#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

bool swaps_last_axes(Node node) {
  std::vector<int64_t> perm = node.attr_ints("perm");
  if (perm.empty()) return node.input(0).type().ranked && node.input(0).type().rank() == 2;
  size_t rank = perm.size();
  for (size_t axis = 0; axis + 2 < rank; ++axis)
    if (perm[axis] != static_cast<int64_t>(axis)) return false;
  return rank >= 2 && perm[rank - 2] == static_cast<int64_t>(rank) - 1 &&
         perm[rank - 1] == static_cast<int64_t>(rank) - 2;
}

bool is_computed(Value operand) {
  return !operand.is_constant() && !made_by(operand, "DequantizeLinear");
}

Result<Value> transposed(Rewriter& rewriter, Value operand) {
  Node before = made_by(operand, "Transpose");
  if (before && swaps_last_axes(before)) return before.input(0);
  std::vector<int64_t> perm;
  for (size_t axis = 0; axis < operand.type().rank(); ++axis)
    perm.push_back(static_cast<int64_t>(axis));
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return rewriter.op("Transpose", {operand}, {{"perm", perm}});
}

Result<bool> rewrite(Rewriter& rewriter, Node node) {
  Node product = made_by(node.input(0), "MatMul");
  if (!product || !is_private(node.input(0)) || !swaps_last_axes(node)) return false;
  Value a = product.input(0), b = product.input(1);
  Type left = a.type(), right = b.type();
  if (!left.ranked || !right.ranked || left.rank() != right.rank() || left.rank() < 2) return false;
  bool is_transposed = false;
  for (Value operand : {a, b}) {
    Node before = made_by(operand, "Transpose");
    is_transposed |= before && swaps_last_axes(before);
    if (!is_computed(operand) || (before && !is_computed(before.input(0)))) return false;
  }
  if (!is_transposed) return false;
  TN_TRY(first, transposed(rewriter, b));
  TN_TRY(second, transposed(rewriter, a));
  TN_TRY(made, rewriter.op("MatMul", {first, second}));
  return rewriter.replace_as(node, made, product.name());
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  return walk(graph, settings, {"Transpose"}, rewrite);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(product_transpose,
            "fusion.product_transpose",
            "the transpose of a product as the product of the transposes",
            tenon::fusion::run)
