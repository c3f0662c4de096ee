// SPDX-License-Identifier: Apache-2.0
// An operator with every column: y = x / (sum of x^2 along `axis` + epsilon).
#include "tenon/sdk/role/op.hpp"

namespace {

using tenon::EditView;
using tenon::Node;
using tenon::Result;
using tenon::Status;
using tenon::Value;

constexpr const char* kDomain = "com.example";

// 2 as a constant of the type of `like`, and the operator's epsilon.
Result<Value> number(EditView edit, Value like, double value) {
  if (like.dtype() == TN_F64) return edit.constant<double>(TN_F64, {}, {value});
  return edit.constant<float>(TN_F32, {}, {static_cast<float>(value)});
}

Status shape(EditView edit, Node node) {
  tenon::Type x = node.input(0).type();
  if (x.dtype != TN_F32 && x.dtype != TN_F64)
    return tenon::invalid(
        tenon::cat("expected float32 or float64, got ", tenon::dtype_name(x.dtype)));
  int64_t axis = node.attr_int("axis", -1), rank = static_cast<int64_t>(x.rank());
  if (x.ranked && (axis < -rank || axis >= rank))
    return tenon::invalid(
        tenon::cat("attribute axis: expected ", -rank, " to ", rank - 1, ", got ", axis));
  return edit.set_type(node.output(), x);
}

// sum(x * x) + epsilon, with the axis kept as 1.
Result<Value> energy(EditView edit, Node node) {
  Value x = node.input(0);
  TN_TRY(axes, edit.ints({node.attr_int("axis", -1)}));
  TN_TRY(square, edit.op("Mul", {x, x}));
  TN_TRY(sum, edit.op("ReduceSum", {square, axes}));
  TN_TRY(epsilon, number(edit, x, node.attr_float("epsilon", 1e-5)));
  return edit.op("Add", {sum, epsilon});
}

Result<std::vector<Value>> decompose(EditView edit, Node node) {
  TN_TRY(below, energy(edit, node));
  TN_TRY(y, edit.op("Div", {node.input(0), below}));
  return std::vector<Value>{y};
}

// With e the energy: dx = g / e - 2 x sum(g x) / e^2.
Status vjp(tenon::Gradients& b) {
  Value x = b.in(0), g = b.cotangent();
  Value e = b.take(energy(b.edit(), b.of()));
  Value share = b.div(b.sum(b.mul(g, x), {b.of().attr_int("axis", -1)}), b.mul(e, e));
  Value through = b.mul(b.mul(x, b.number(2, x.dtype())), share);
  b.set(0, b.sub(b.div(g, e), through));
  return {};
}

// With a new first axis, an axis that counts from the front is one further.
Status batch(tenon::Batching& b) {
  int64_t axis = b.of().attr_int("axis", -1);
  Node made = b.node({.type = "EnergyNorm",
                      .inputs = {b.in(0)},
                      .attrs = {{"axis", axis < 0 ? axis : axis + 1},
                                {"epsilon", b.of().attr_float("epsilon", 1e-5)}},
                      .domain = kDomain});
  b.set(0, made.output());
  return {};
}

tenon::OpCost cost(Node node) {
  tenon::Type y = node.output().type();
  if (!y.is_static()) return {};  // a free batch size: it cannot be said
  auto n = static_cast<double>(y.elements());
  return {3 * n, 2 * n * (node.input(0).dtype() == TN_F64 ? 8 : 4)};
}

template <class T>
void divide(const T* x, T* y, int64_t outer, int64_t size, int64_t inner, double epsilon) {
  for (int64_t line = 0; line < outer * inner; ++line) {
    int64_t from = line / inner * size * inner + line % inner;
    double below = epsilon;
    for (int64_t k = 0; k < size; ++k)
      below += double{x[from + k * inner]} * double{x[from + k * inner]};
    for (int64_t k = 0; k < size; ++k)
      y[from + k * inner] = static_cast<T>(double{x[from + k * inner]} / below);
  }
}

Status ref(const tenon::Call& call) {
  auto dims = call.shape(0);
  int64_t axis = call.node().attr_int("axis", -1), outer = 1, inner = 1;
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  for (size_t d = 0; d < dims.size(); ++d)
    (d < static_cast<size_t>(axis) ? outer : inner) *= d == static_cast<size_t>(axis) ? 1 : dims[d];
  double epsilon = call.node().attr_float("epsilon", 1e-5);
  int64_t size = dims[static_cast<size_t>(axis)];
  TN_TRY(out, call.out(0, call.dtype(0), dims));
  if (call.dtype(0) == TN_F64)
    divide(call.data<double>(0), tenon::data_of<double>(out), outer, size, inner, epsilon);
  else
    divide(call.data<float>(0), tenon::data_of<float>(out), outer, size, inner, epsilon);
  return {};
}

Result<Node> sample(EditView edit, uint64_t seed) {
  auto rank = static_cast<int64_t>(seed % 3 + 1);
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < rank; ++d)
    dims.push_back(static_cast<int64_t>((seed >> d) % 4 + 1));
  TN_TRY(x, edit.input("x", tenon::Type(TN_F32, dims)));
  int64_t axis = static_cast<int64_t>(seed / 3) % (2 * rank) - rank;
  return edit.add(
      {.type = "EnergyNorm", .inputs = {x}, .attrs = {{"axis", axis}}, .domain = kDomain});
}

constexpr tn_op kEnergyNorm = tenon::op_row({
    .type = "EnergyNorm",
    .domain = kDomain,
    .axes = "p.. d~ r.. -> p.. d r.. ; p = axis",
    .attributes = R"([{"name": "axis", "type": "int", "default": -1},
                      {"name": "epsilon", "type": "float", "default": 1e-5}])",
    .shape = tenon::shape<shape>,
    .decompose = tenon::decompose<decompose>,
    .cost = tenon::cost<cost>,
    .ref = tenon::ref<ref>,
    .sample = tenon::sample<sample>,
    .vjp = tenon::vjp<vjp>,
    .vjp_inputs = 1,
    .vjp_outputs = 0,
    .batch = tenon::batch<batch>,
    .cast = "cpu=fp32 cuda=fp32",
    .recompute = "cheap",
});

}  // namespace

TENON_OPS(energy_norm, &kEnergyNorm)
