// SPDX-License-Identifier: Apache-2.0
// seams:Scaled: y = x * weight, with x [n, .., k] and weight [k]; not pointwise for the host, so
// that the gradient's norm by example is the row's own.
#include "tenon/sdk/role/op.hpp"

namespace tenon::test {
namespace {

Status scaled_shape(EditView edit, Node node) {
  return edit.set_type(node.output(), node.input(0).type());
}

Result<std::vector<Value>> scaled_decompose(EditView edit, Node node) {
  TN_TRY(product, edit.op("Mul", {node.input(0), node.input(1)}));
  return std::vector<Value>{product};
}

Status scaled_vjp(Gradients& g) {
  if (g.wanted(0)) g.set(0, g.mul(g.cotangent(), g.in(1)));
  if (!g.wanted(1)) return {};
  Value product = g.mul(g.cotangent(), g.in(0));
  std::vector<int64_t> axes;
  for (size_t i = 0; i + 1 < g.ranked(product, "Scaled").rank(); ++i)
    axes.push_back(static_cast<int64_t>(i));
  g.set(1, g.sum(product, axes, false));
  return {};
}

// dy * x of an example, summed over all but the last axis, is its gradient.
Status scaled_norms(Gradients& g) {
  if (g.wanted(0) || !g.wanted(1)) return unsupported("expected the weight alone");
  Value product = g.mul(g.cotangent(), g.in(0));
  size_t rank = g.ranked(product, "Scaled").rank();
  std::vector<int64_t> middle;
  for (size_t i = 1; i + 1 < rank; ++i)
    middle.push_back(static_cast<int64_t>(i));
  if (!middle.empty()) product = g.sum(product, middle, false);
  g.set(1, g.op("ReduceSumSquare", {product, g.ints({1})}, {{"keepdims", 0}}));
  return {};
}

Result<Node> scaled_sample(EditView edit, uint64_t seed) {
  const auto n = static_cast<int64_t>(1 + seed % 3), k = static_cast<int64_t>(1 + seed % 4);
  TN_TRY(x, edit.input("x", Type(TN_F32, std::vector<int64_t>{n, 2, k})));
  TN_TRY(weight, edit.input("weight", Type(TN_F32, std::vector<int64_t>{k})));
  return edit.add({.type = "Scaled", .inputs = {x, weight}, .domain = "seams"});
}

constexpr tn_op kScaled = op_row({
    .type = "Scaled",
    .domain = "seams",
    .axes = "b.. k, k -> b.. k",
    .shape = shape<scaled_shape>,
    .decompose = decompose<scaled_decompose>,
    .sample = sample<scaled_sample>,
    .vjp = vjp<scaled_vjp>,
    .example_norms = example_norms<scaled_norms>,
});

}  // namespace

TENON_OPS(scaled, &kScaled)

}  // namespace tenon::test
