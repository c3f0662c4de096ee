// SPDX-License-Identifier: Apache-2.0
// CumSum and CumProd.
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
// No division, so that zeros do no harm: an element's gradient is the product before it times a
// sum that is carried from the end, c' = (dy +) x c, in a Scan.
Status product_vjp(Gradients& g) {
  std::optional<std::vector<int64_t>> stated = known_ints(g.in(1));
  Type x = g.ranked(g.in(0), "CumProd");
  if (!stated || stated->size() != 1)
    return unsupported("axis: expected a constant for a gradient");
  TN_TRY(axis, axis_in(stated->at(0), x.rank()));
  bool exclusive = g.of().attr_int("exclusive") != 0, reverse = g.of().attr_int("reverse") != 0;
  Type slice = x;
  slice.dims.erase(slice.dims.begin() + axis);
  if (!slice.symbols.empty()) slice.symbols.erase(slice.symbols.begin() + axis);
  TN_TRY(body, make_body(g.edit(), [&](const Edit& inner) -> Status {
           Builder b(inner);
           Value sum = b.take(inner.input("sum", slice)), dy = b.take(inner.input("dy", slice));
           Value here = b.take(inner.input("x", slice)), with = b.add(dy, b.mul(here, sum));
           if (!exclusive) with = b.mul(here, b.add(dy, sum));
           Value given = exclusive ? b.op("Identity", {sum}) : b.add(dy, sum);
           TN_CHECK(b.status());
           TN_CHECK(inner.output("next", with));
           return inner.output("given", given);
         }));
  Value zeros = g.mul(g.op("ReduceSum", {g.zeros_like(g.in(0)), g.ints({axis})}, {{"keepdims", 0}}),
                      g.number(0, x.dtype));
  const std::vector<int64_t> axes{axis, axis}, ways(2, !reverse), out_axis{axis}, out_way{!reverse};
  Node scan = g.node({.type = "Scan",
                      .inputs = {zeros, g.cotangent(), g.in(0)},
                      .attrs = {{"body", any_graph(body.get())},
                                {"num_scan_inputs", 2},
                                {"scan_input_axes", axes},
                                {"scan_input_directions", ways},
                                {"scan_output_axes", out_axis},
                                {"scan_output_directions", out_way}},
                      .n_outputs = 2});
  Value before = g.op("CumProd", {g.in(0), g.in(1)}, {{"exclusive", 1}, {"reverse", int(reverse)}});
  if (scan) g.set(0, g.mul(before, scan.output(1)));
  return {};
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
                                   .vjp_outputs = 1,
                                   .batch = batch<cumulate_batch>,
                                   .cast = "cuda=fp32"});

}  // namespace

TENON_OPS(cumulate, &kSum, &kProduct)

}  // namespace tenon::ops
