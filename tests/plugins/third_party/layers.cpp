// SPDX-License-Identifier: Apache-2.0
// Layers with weights: what they are follows from axes and quant.
#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/op.hpp"

namespace {

using tenon::Builder;
using tenon::EditView;
using tenon::Node;
using tenon::Result;
using tenon::Status;
using tenon::Value;
using Values = std::vector<Value>;

constexpr const char* kDomain = "acme";

// y = x W^T + b, w: [n, k]
Result<Values> linear(EditView edit, Node node) {
  Builder b(edit);
  Value y = b.op("MatMul", {node.input(0), b.transpose(node.input(1), {1, 0})});
  if (node.input(2)) y = b.add(y, node.input(2));
  TN_CHECK(b.status());
  return Values{y};
}

Result<Values> linear_relu(EditView edit, Node node) {
  TN_TRY(y, linear(edit, node));
  TN_TRY(positive, edit.op("Relu", {y[0]}));
  return Values{positive};
}

// y = (h sigmoid(h)) * (x V^T), h = x W + b; w: [k, n], v: [n, k]
Result<Values> gated(EditView edit, Node node) {
  Builder b(edit);
  Value h = b.op("MatMul", {node.input(0), node.input(1)});
  if (node.input(3)) h = b.add(h, node.input(3));
  Value other = b.op("MatMul", {node.input(0), b.transpose(node.input(2), {1, 0})});
  Value y = b.mul(b.mul(h, b.op("Sigmoid", {h})), other);
  TN_CHECK(b.status());
  return Values{y};
}

// A convolution with `step` and no padding, w: [height, width, c, o]
Result<Values> window(EditView edit, Node node) {
  Builder b(edit);
  std::vector<int64_t> strides(2, node.attr_int("step", 1));
  Values inputs{node.input(0), b.transpose(node.input(1), {3, 2, 0, 1})};
  if (node.input(2)) inputs.push_back(node.input(2));
  Value y = b.op("Conv", inputs, {{"strides", strides}});
  TN_CHECK(b.status());
  return Values{y};
}

Status window_shape(EditView edit, Node node) {
  tenon::Type x = node.input(0).type(), w = node.input(1).type();
  if (!x.ranked || !w.ranked) return {};
  if (x.rank() != 4 || w.rank() != 4) return tenon::invalid("expected ranks of 4");
  tenon::Type y(x.dtype, {x.dims[0], w.dims[3], -1, -1});
  for (size_t i : {2, 3})
    if (x.dims[i] >= 0 && w.dims[i - 2] >= 0)
      y.dims[i] = (x.dims[i] - w.dims[i - 2]) / node.attr_int("step", 1) + 1;
  return edit.set_type(node.output(), y);
}

constexpr tn_op kLinear = tenon::op_row({.type = "Linear",
                                         .domain = kDomain,
                                         .axes = "B* m k, n k, n? -> B* m n",
                                         .quant = "compute act=0 weight=1 bias=2 axis=0",
                                         .decompose = tenon::decompose<linear>});
constexpr tn_op kLinearRelu = tenon::op_row({.type = "LinearRelu",
                                             .domain = kDomain,
                                             .axes = "B* m k, n k, n? -> B* m n",
                                             .quant = "compute act=0 weight=1 bias=2 axis=0 fused",
                                             .decompose = tenon::decompose<linear_relu>});
constexpr tn_op kGated =
    tenon::op_row({.type = "Gated",
                   .domain = kDomain,
                   .axes = "B* m k, k n, n k, n? -> B* m n",
                   .quant = "compute act=0 weight=1 bias=3 axis=1, act=0 weight=2 axis=0 fused",
                   .decompose = tenon::decompose<gated>});
constexpr tn_op kWindow =
    tenon::op_row({.type = "Window",
                   .domain = kDomain,
                   .axes = "n c s.., k.. c o, o? -> n o s'..",
                   .attributes = R"([{"name": "step", "type": "int", "default": 1}])",
                   .quant = "compute act=0 weight=1 bias=2 axis=3",
                   .shape = tenon::shape<window_shape>,
                   .decompose = tenon::decompose<window>});

}  // namespace

TENON_OPS(layers, &kLinear, &kLinearRelu, &kGated, &kWindow)
