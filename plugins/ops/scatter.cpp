// SPDX-License-Identifier: Apache-2.0
// ScatterElements and ScatterND: a copy with some elements written, added to, multiplied, ...
#include <algorithm>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "examples.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status scatter_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(0).type());
}

template <class T>
Status combine(std::string_view how, T& at, T value) {
  using W = std::conditional_t<std::is_same_v<T, bool>, int64_t, Wide<T>>;
  W a = static_cast<W>(at), b = static_cast<W>(value);
  if (how == "none")
    at = value;
  else if (how == "add")
    at = static_cast<T>(a + b);
  else if (how == "mul")
    at = static_cast<T>(a * b);
  else if (how == "max")
    at = b > a || b != b ? value : at;
  else if (how == "min")
    at = b < a || b != b ? value : at;
  else
    return invalid(cat("reduction: expected one of none, add, mul, max, min, got '", how, "'"));
  return {};
}

Result<int64_t> checked(int64_t index, int64_t size) {
  if (index < -size || index >= size)
    return Status(TN_OUT_OF_RANGE,
                  cat("indices: expected -", size, "..", size - 1, ", got ", index));
  return index < 0 ? index + size : index;
}

Status elements_ref(const Call& call) {
  std::span<const int64_t> shape = call.shape(0), indices = call.shape(1);
  TN_TRY(axis, axis_in(call.node().attr_int("axis"), shape.size()));
  auto along = static_cast<size_t>(axis);
  bool fits = indices.size() == shape.size() && to_vector(indices) == to_vector(call.shape(2));
  for (size_t d = 0; fits && d < shape.size(); ++d)
    fits = d == along || indices[d] <= shape[d];
  if (!fits) return invalid("expected indices and updates of one shape that fits into data");
  std::vector<int64_t> at = read_ints(call.in(1)), strides = dense_strides(shape);
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  std::memcpy(data_of<char>(out), call.data<char>(0), bytes_of(call.dtype(0), element_count(out)));
  std::string_view how = call.node().attr_text("reduction", "none");
  return dispatch<kAll>(call.dtype(0), [&]<class T>() -> Status {
    Odometer place(indices);
    for (size_t i = 0; i < at.size(); ++i, place.next()) {
      TN_TRY(index, checked(at[i], shape[along]));
      int64_t to = place.dot(strides) + (index - place[along]) * strides[along];
      TN_CHECK(combine(how, data_of<T>(out)[to], call.data<T>(2)[i]));
    }
    return {};
  });
}

Status nd_ref(const Call& call) {
  std::span<const int64_t> shape = call.shape(0), indices = call.shape(1);
  if (indices.empty() || indices.back() > int64_t(shape.size()))
    return invalid(cat("indices: expected tuples of at most ", shape.size(), " numbers"));
  auto depth = static_cast<size_t>(indices.back());
  int64_t run = element_count(shape.subspan(depth));
  int64_t tuples = element_count(indices.subspan(0, indices.size() - 1));
  if (element_count(call.in(2)) != tuples * run)
    return invalid(cat("updates: expected ", tuples * run, " elements"));
  std::vector<int64_t> at = read_ints(call.in(1)), strides = dense_strides(shape);
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  std::memcpy(data_of<char>(out), call.data<char>(0), bytes_of(call.dtype(0), element_count(out)));
  std::string_view how = call.node().attr_text("reduction", "none");
  return dispatch<kAll>(call.dtype(0), [&]<class T>() -> Status {
    for (int64_t t = 0; t < tuples; ++t) {
      int64_t to = 0;
      for (size_t k = 0; k < depth; ++k) {
        TN_TRY(index, checked(at[static_cast<size_t>(t) * depth + k], shape[k]));
        to += index * strides[k];
      }
      for (int64_t i = 0; i < run; ++i)
        TN_CHECK(combine(how, data_of<T>(out)[to + i], call.data<T>(2)[t * run + i]));
    }
    return {};
  });
}

Result<Node> elements_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t rows = random.integer(2, 4), columns = random.integer(2, 5);
  TN_TRY(x, random.input(TN_F32, {rows, columns}));
  std::vector<int64_t> at;
  for (int64_t i = 0; i < columns; ++i)
    at.push_back(random.integer(-rows, rows - 1));
  TN_TRY(indices, edit.constant<int64_t>(TN_I64, {1, columns}, at));
  TN_TRY(updates, random.input(TN_F32, {1, columns}));
  return edit.add({.type = "ScatterElements",
                   .inputs = {x, indices, updates},
                   .attrs = {{"reduction", random.coin() ? "add" : "none"}}});
}
Result<Node> nd_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t inner = random.integer(1, 4);
  TN_TRY(x, random.input(TN_F32, {4, 3, inner}));
  TN_TRY(indices, edit.constant<int64_t>(TN_I64, {2, 2}, std::vector<int64_t>{0, -1, 3, 1}));
  TN_TRY(updates, random.input(TN_F32, {2, inner}));
  return edit.add({.type = "ScatterND",
                   .inputs = {x, indices, updates},
                   .attrs = {{"reduction", random.coin() ? "max" : "none"}}});
}

// Data keep the gradient where they stayed, and updates have it where they won.
Status extreme_vjp(Gradients& g, bool elements) {
  Value dy = g.cotangent(), at = g.in(1);
  int64_t axis = g.of().attr_int("axis");
  auto taken = [&](Value from) {
    return elements ? g.op("GatherElements", {from, at}, {{"axis", axis}})
                    : g.op("GatherND", {from, at});
  };
  auto where = [&](Value a, Value b, Value gradient) {
    return g.op("Where", {g.op("Equal", {a, b}), gradient, g.number(0, dy.dtype())});
  };
  if (g.wanted(0)) g.set(0, where(g.in(0), g.out(), dy));
  if (g.wanted(2)) g.set(2, where(g.in(2), taken(g.out()), taken(dy)));
  return {};
}

// What was written over has no gradient; what was written or added has that of its place.
Status scatter_vjp(Gradients& g) {
  bool elements = g.of().is("ScatterElements");
  std::string_view how = g.of().attr_text("reduction", "none");
  Value dy = g.cotangent(), at = g.in(1);
  int64_t axis = g.of().attr_int("axis");
  if (how == "max" || how == "min") return extreme_vjp(g, elements);
  if (how != "none" && how != "add")
    return unsupported(cat("reduction: expected none, add, max or min for a gradient, got ", how));
  if (g.wanted(0) && how == "add") g.set(0, dy);
  if (g.wanted(0) && how == "none") {
    Value zeros = g.zeros_like(g.in(2));
    g.set(0, elements ? g.op("ScatterElements", {dy, at, zeros}, {{"axis", axis}})
                      : g.op("ScatterND", {dy, at, zeros}));
  }
  if (!g.wanted(2)) return {};
  g.set(2,
        elements ? g.op("GatherElements", {dy, at}, {{"axis", axis}}) : g.op("GatherND", {dy, at}));
  return {};
}

// Every tuple of indices gets the number of its example in front.
Status nd_batch(Batching& b) {
  Type at = b.ranked(b.of().input(1), "ScatterND");
  int64_t n = known_example_count(b);
  if (n < 0 || at.rank() < 1) return unsupported("a count of examples that is not known");
  std::vector<int64_t> counts, ones(at.rank() + 1, 1);
  for (int64_t i = 0; i < n; ++i)
    counts.push_back(i);
  ones[0] = n;
  Value indices = for_all_examples(b, 1);
  Value shape =
      b.op("Concat", {b.op("Shape", {indices}, {{"end", -1}}), b.ints({1})}, {{"axis", 0}});
  Value examples = b.op("Expand", {b.reshape(b.ints(counts), ones), shape});
  Value all = b.op("Concat", {b.cast(examples, at.dtype), indices}, {{"axis", -1}});
  Node made = again(b, b.of(), {for_all_examples(b, 0), all, for_all_examples(b, 2)});
  if (made) b.set(0, made.output());
  return {};
}

constexpr tn_op kElements =
    op_row({.type = "ScatterElements",
            .since = 18,
            .attributes = R"([{"name": "axis", "type": "int", "default": 0},
                              {"name": "reduction", "type": "string", "default": "none"}])",
            .shape = shape<scatter_shape, "x: T[i'..], indices: int[i..], updates: T[i..]">,
            .cost = cost<move_cost>,
            .ref = ref<elements_ref>,
            .sample = sample<elements_sample>,
            .vjp = vjp<scatter_vjp>,
            .vjp_inputs = 7,
            .vjp_outputs = 1,
            .batch = batch<batch_all_by_axis>});
constexpr tn_op kNd =
    op_row({.type = "ScatterND",
            .since = 18,
            .attributes = R"([{"name": "reduction", "type": "string", "default": "none"}])",
            .shape = shape<scatter_shape, "x: T, indices: int, updates: T">,
            .cost = cost<move_cost>,
            .ref = ref<nd_ref>,
            .sample = sample<nd_sample>,
            .vjp = vjp<scatter_vjp>,
            .vjp_inputs = 7,
            .vjp_outputs = 1,
            .batch = batch<nd_batch>});

}  // namespace

TENON_OPS(scatter, &kElements, &kNd)

}  // namespace tenon::ops
