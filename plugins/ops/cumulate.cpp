// SPDX-License-Identifier: Apache-2.0
// CumSum, CumProd, and tenon:CumProdGrad.
#include "tenon/wrapping.hpp"

#include "batching_rules.hpp"
#include "bodies.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status cumulate_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(0).type());
}

template <bool kProduct>
Status cumulate_ref(const Call& call) {
  std::vector<int64_t> given = read_ints(call.in(1));
  if (given.size() != 1) return invalid(cat("axis: expected one number, got ", given.size()));
  TN_TRY(axis, axis_in(given[0], call.shape(0).size()));
  AxisSplit split(call.shape(0), axis);
  bool exclusive = call.node().attr_int("exclusive") != 0;
  bool reverse = call.node().attr_int("reverse") != 0;
  TN_TRY(out, call.out(0, call.dtype(0), call.shape(0)));
  return dispatch<kNumeric>(call.dtype(0), [&]<class T>() -> Status {
    using W = Wide<T>;
    for (int64_t i = 0; i < split.outer * split.inner; ++i) {
      int64_t first = i / split.inner * split.size * split.inner + i % split.inner;
      W sum = kProduct ? 1 : 0;
      for (int64_t k = 0; k < split.size; ++k) {
        int64_t at = first + (reverse ? split.size - 1 - k : k) * split.inner;
        W x = static_cast<W>(call.data<T>(0)[at]),
          next = kProduct ? wrapping_mul(sum, x) : wrapping_add(sum, x);
        data_of<T>(out)[at] = static_cast<T>(exclusive ? sum : next);
        sum = next;
      }
    }
    return {};
  });
}

Result<Node> cumulate_sample(EditView edit, uint64_t seed, std::string_view type) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 3);
  auto rank = static_cast<int64_t>(dims.size());
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(axis, edit.constant<int64_t>(TN_I64, {}, std::vector{random.integer(-rank, rank - 1)}));
  return edit.add(
      {.type = type,
       .inputs = {x, axis},
       .attrs = {{"exclusive", random.integer(0, 1)}, {"reverse", random.integer(0, 1)}}});
}
Result<Node> sum_sample(EditView edit, uint64_t seed) {
  return cumulate_sample(edit, seed, "CumSum");
}
Result<Node> product_sample(EditView edit, uint64_t seed) {
  return cumulate_sample(edit, seed, "CumProd");
}

Value cumulated_back(Gradients& g, Value dy) {
  return g.op(
      "CumSum", {dy, g.in(1)},
      {{"exclusive", g.of().attr_int("exclusive")}, {"reverse", 1 - g.of().attr_int("reverse")}});
}
Status sum_vjp(Gradients& g) {
  g.set(0, cumulated_back(g, g.cotangent()));
  return {};
}
Status product_vjp(Gradients& g) {
  std::optional<std::vector<int64_t>> axis = known_ints(g.in(1));
  if (!axis || axis->size() != 1) return unsupported("axis: expected a constant for a gradient");
  Node made = g.node({.type = "CumProdGrad",
                      .inputs = {g.cotangent(), g.in(0)},
                      .attrs = {{"axis", axis->at(0)},
                                {"exclusive", g.of().attr_int("exclusive")},
                                {"reverse", g.of().attr_int("reverse")}},
                      .domain = "tenon"});
  if (made) g.set(0, made.output());
  return {};
}

// tenon:CumProdGrad(dy, x). No division, so that zeros do no harm: an element's gradient is the
// product before it times a sum that is carried from the end, c' = (dy +) x c.
Status product_grad_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(1).type());
}

Status product_grad_ref(const Call& call) {
  if (to_vector(call.shape(0)) != to_vector(call.shape(1)))
    return invalid("dy: expected the shape of x");
  TN_TRY(axis, axis_in(call.node().attr_int("axis"), call.shape(1).size()));
  AxisSplit split(call.shape(1), axis);
  bool exclusive = call.node().attr_int("exclusive") != 0;
  bool reverse = call.node().attr_int("reverse") != 0;
  TN_TRY(out, call.out(0, call.dtype(1), call.shape(1)));
  return dispatch<kFloats>(call.dtype(1), [&]<class T>() -> Status {
    std::vector<double> before(static_cast<size_t>(split.size));
    for (int64_t i = 0; i < split.outer * split.inner; ++i) {
      int64_t first = i / split.inner * split.size * split.inner + i % split.inner;
      auto at = [&](int64_t k) { return first + (reverse ? split.size - 1 - k : k) * split.inner; };
      double product = 1, sum = 0;
      for (int64_t k = 0; k < split.size; ++k) {
        before[static_cast<size_t>(k)] = product;
        product *= static_cast<double>(call.data<T>(1)[at(k)]);
      }
      for (int64_t k = split.size; k-- > 0;) {
        auto dy = static_cast<double>(call.data<T>(0)[at(k)]);
        auto x = static_cast<double>(call.data<T>(1)[at(k)]);
        double given = exclusive ? sum : dy + sum;
        data_of<T>(out)[at(k)] = static_cast<T>(before[static_cast<size_t>(k)] * given);
        sum = exclusive ? dy + x * sum : x * given;
      }
    }
    return {};
  });
}

// The sum in a Scan.
Result<std::vector<Value>> product_grad_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value dy = node.input(0), x = node.input(1);
  Type slice = b.ranked(x, "CumProdGrad");
  TN_TRY(axis, axis_in(node.attr_int("axis"), slice.rank()));
  int64_t exclusive = node.attr_int("exclusive"), reverse = node.attr_int("reverse");
  slice.dims.erase(slice.dims.begin() + axis);
  if (!slice.symbols.empty()) slice.symbols.erase(slice.symbols.begin() + axis);
  TN_TRY(body, make_body(edit, [&](const Edit& inner) -> Status {
           Builder c(inner);
           Value sum = c.take(inner.input("sum", slice)), d = c.take(inner.input("dy", slice));
           Value here = c.take(inner.input("x", slice)), with = c.add(d, c.mul(here, sum));
           if (exclusive == 0) with = c.mul(here, c.add(d, sum));
           Value given = exclusive != 0 ? c.op("Identity", {sum}) : c.add(d, sum);
           TN_CHECK(c.status());
           TN_CHECK(inner.output("next", with));
           return inner.output("given", given);
         }));
  Value zeros = b.mul(b.op("ReduceSum", {b.zeros_like(x), b.ints({axis})}, {{"keepdims", 0}}),
                      b.number(0, x.dtype()));
  const int64_t back = reverse == 0;
  const std::vector<int64_t> axes{axis, axis}, ways(2, back), out_axis{axis}, out_way{back};
  Node scan = b.node({.type = "Scan",
                      .inputs = {zeros, dy, x},
                      .attrs = {{"body", any_graph(body.get())},
                                {"num_scan_inputs", 2},
                                {"scan_input_axes", axes},
                                {"scan_input_directions", ways},
                                {"scan_output_axes", out_axis},
                                {"scan_output_directions", out_way}},
                      .n_outputs = 2});
  Value before = b.op("CumProd", {x, b.number(static_cast<double>(axis), TN_I64)},
                      {{"exclusive", 1}, {"reverse", reverse}});
  Value y = scan ? b.mul(before, scan.output(1)) : Value{};
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<Node> product_grad_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 3);
  auto rank = static_cast<int64_t>(dims.size());
  TN_TRY(dy, random.input(TN_F32, dims));
  TN_TRY(x, random.input(TN_F32, dims));
  return edit.add({.type = "CumProdGrad",
                   .inputs = {dy, x},
                   .attrs = {{"axis", random.integer(-rank, rank - 1)},
                             {"exclusive", random.integer(0, 1)},
                             {"reverse", random.integer(0, 1)}},
                   .domain = "tenon"});
}

Status cumulate_batch(Batching& b) {
  TN_TRY(axis, stated_ints(b, 1));
  size_t rank = b.ranked(b.of().input(0), "CumSum").rank();
  if (axis.size() != 1) return invalid(cat("axis: expected one number, got ", axis.size()));
  Value at = b.number(static_cast<double>(shifted(axis, rank)[0]), TN_I64);
  Node made = again(b, b.of(), {b.in(0), at});
  if (made) b.set(0, made.output());
  return {};
}

constexpr const char* kAttributes = R"([{"name": "exclusive", "type": "int", "default": 0},
                                        {"name": "reverse", "type": "int", "default": 0}])";
constexpr tn_op kSum = op_row({.type = "CumSum",
                               .since = 14,
                               .attributes = kAttributes,
                               .shape = shape<cumulate_shape, "x: number, axis: int[one]">,
                               .ref = ref<cumulate_ref<false>>,
                               .sample = sample<sum_sample>,
                               .vjp = vjp<sum_vjp>,
                               .vjp_inputs = 2,
                               .vjp_outputs = 0,
                               .batch = batch<cumulate_batch>,
                               .cast = "cuda=fp32"});
constexpr tn_op kProduct = op_row({.type = "CumProd",
                                   .since = 26,
                                   .attributes = kAttributes,
                                   .shape = shape<cumulate_shape, "x: number, axis: int[one]">,
                                   .ref = ref<cumulate_ref<true>>,
                                   .sample = sample<product_sample>,
                                   .vjp = vjp<product_vjp>,
                                   .vjp_inputs = 3,
                                   .vjp_outputs = 0,
                                   .batch = batch<cumulate_batch>,
                                   .cast = "cuda=fp32"});
constexpr tn_op kProductGrad =
    op_row({.type = "CumProdGrad",
            .domain = "tenon",
            .axes = "p.. d~ r.., p.. d~ r.. -> p.. d r.. ; p = axis",
            .attributes = R"([{"name": "axis", "type": "int", "default": -1},
                              {"name": "exclusive", "type": "int", "default": 0},
                              {"name": "reverse", "type": "int", "default": 0}])",
            .shape = shape<product_grad_shape, "dy: T[d..], x: T[d..] ; T = float">,
            .decompose = decompose<product_grad_decompose>,
            .cost = cost<move_cost>,
            .ref = ref<product_grad_ref>,
            .sample = sample<product_grad_sample>,
            .cast = "cuda=fp32"});

}  // namespace

TENON_OPS(cumulate, &kSum, &kProduct, &kProductGrad)

}  // namespace tenon::ops
