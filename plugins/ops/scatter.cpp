// SPDX-License-Identifier: Apache-2.0
// ScatterElements and ScatterND: a copy with some elements written, added to, multiplied, ...
#include <algorithm>
#include <set>

#include "tenon/sdk/match.hpp"
#include "tenon/wrapping.hpp"

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status scatter_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(0).type());
}
Status elements_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (x.ranked) TN_CHECK(axis_in(node.attr_int("axis"), x.rank()).status());
  return scatter_shape(edit, node);
}

template <class T>
Status combine(std::string_view how, T& at, T value) {
  using W = std::conditional_t<std::is_same_v<T, bool>, int64_t, Wide<T>>;
  W a = static_cast<W>(at), b = static_cast<W>(value);
  if (how == "none")
    at = value;
  else if (how == "add")
    at = static_cast<T>(wrapping_add(a, b));
  else if (how == "mul")
    at = static_cast<T>(wrapping_mul(a, b));
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

const char* reduction_of(Sampler& random) {
  constexpr const char* kAllOf[] = {"none", "add", "mul", "max", "min"};
  return kAllOf[random.integer(0, 4)];
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
                   .attrs = {{"reduction", reduction_of(random)}}});
}
Result<Node> nd_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t inner = random.integer(1, 4);
  TN_TRY(x, random.input(TN_F32, {4, 3, inner}));
  TN_TRY(indices, edit.constant<int64_t>(TN_I64, {2, 2}, std::vector<int64_t>{0, -1, 3, 1}));
  TN_TRY(updates, random.input(TN_F32, {2, inner}));
  return edit.add({.type = "ScatterND",
                   .inputs = {x, indices, updates},
                   .attrs = {{"reduction", reduction_of(random)}}});
}

// What a gradient reads and writes at the places of a scatter.
class Places {
 public:
  explicit Places(Gradients& g) : g_(g), elements_(g.of().is("ScatterElements")) {}
  Value taken(Value from) {
    Attr axis{"axis", g_.of().attr_int("axis")};
    return elements_ ? g_.op("GatherElements", {from, g_.in(1)}, {axis})
                     : g_.op("GatherND", {from, g_.in(1)});
  }
  Value put(Value into, Value updates, const char* how) {
    std::vector<Attr> attrs{{"reduction", how}};
    if (elements_) attrs.emplace_back("axis", g_.of().attr_int("axis"));
    return g_.op(elements_ ? "ScatterElements" : "ScatterND", {into, g_.in(1), updates}, attrs);
  }

 private:
  Gradients& g_;
  bool elements_;
};

// Whoever is the largest (smallest) has the gradient; those that are equal share it.
Status extreme_vjp(Gradients& g, Places places) {
  Value dy = g.cotangent(), none = g.number(0, dy.dtype());
  Value stayed = g.op("Equal", {g.in(0), g.out()});
  Value won = g.op("Equal", {g.in(2), places.taken(g.out())});
  Value count = places.put(g.cast(stayed, dy.dtype()), g.cast(won, dy.dtype()), "add");
  Value share = g.op("Div", {dy, g.op("Max", {count, g.number(1, dy.dtype())})});
  if (g.wanted(0)) g.set(0, g.op("Where", {stayed, share, none}));
  if (g.wanted(2)) g.set(2, g.op("Where", {won, places.taken(share), none}));
  return {};
}

// Of a product the others, which may be none, several at one place, or 0.
Status product_vjp(Gradients& g, Places places) {
  Value dy = g.cotangent(), x = g.in(0), u = g.in(2);
  if (g.wanted(0)) g.set(0, places.put(dy, u, "mul"));
  if (!g.wanted(2)) return {};
  Value one = g.number(1, dy.dtype()), none = g.number(0, dy.dtype());
  Value is_zero = g.op("Equal", {u, none}), rest = g.op("Where", {is_zero, one, u});
  Value product = places.taken(places.put(g.expand_like(one, x), rest, "mul"));
  Value zeros = places.taken(places.put(g.zeros_like(x), g.cast(is_zero, dy.dtype()), "add"));
  Value beside_zero = g.op("Where", {g.op("Equal", {zeros, one}), product, none});
  Value beside = g.op("Where", {g.op("Equal", {zeros, none}), g.op("Div", {product, rest}), none});
  Value others = g.op("Where", {is_zero, beside_zero, beside});
  g.set(2, g.op("Mul", {places.taken(g.op("Mul", {dy, x})), others}));
  return {};
}

// Whether no two updates have the same place, as far as constants and sizes say.
bool has_own_places(Gradients& g) {
  const Type at = g.in(1).type();
  if (!at.is_static() || at.rank() == 0) return false;
  const bool elements = g.of().is("ScatterElements");
  const int64_t width = elements ? 1 : at.dims.back();
  if (width > 0 && at.elements() <= width) return true;
  const std::optional<std::vector<int64_t>> numbers = constant_ints(g.in(1));
  const Type x = g.in(0).type();
  if (!numbers || width < 1 || !x.is_static() || (elements && at.rank() > 1)) return false;
  std::set<std::vector<int64_t>> seen;
  for (size_t i = 0; i < numbers->size(); i += static_cast<size_t>(width)) {
    std::vector<int64_t> place;
    for (size_t k = 0; k < static_cast<size_t>(width); ++k)
      place.push_back((*numbers)[i + k] < 0 ? (*numbers)[i + k] + x.dims[k] : (*numbers)[i + k]);
    if (!seen.insert(place).second) return false;
  }
  return true;
}

// The cotangents of updates that were written: of several for one place only the one that is there
// has any. Which one it is shows a scatter of their numbers.
Value written_vjp(Gradients& g, Places places, Value dy) {
  Value taken = places.taken(dy);
  if (has_own_places(g)) return taken;
  const bool elements = g.of().is("ScatterElements");
  Value shape = g.shape_of(g.in(0)), counts = g.shape_of(g.in(1));
  if (!elements) {  // a tuple of indices is one place, of a cell or of all cells behind it
    const Type at = g.fixed(g.in(1), g.of().type()), x = g.ranked(g.in(0), g.of().type());
    if (!g.status().ok() || at.rank() == 0) return taken;
    shape = g.op("Slice", {shape, g.ints({0}), g.ints({at.dims.back()})});
    counts = g.op("Slice", {counts, g.ints({0}), g.ints({-1})});
  }
  Value none = g.number(0, TN_I64), one = g.number(1, TN_I64);
  Value count = g.op("ReduceProd", {counts}, {{"keepdims", 0}});
  Value numbers = g.op("Reshape", {g.op("Range", {none, count, one}), counts}, {{"allowzero", 1}});
  Value last = places.put(g.op("Expand", {g.number(-1, TN_I64), shape}), numbers, "none");
  Value is_there = g.op("Equal", {places.taken(last), numbers});
  const size_t width = elements ? 0 : static_cast<size_t>(g.in(1).type().dims.back());
  std::vector<int64_t> behind;
  for (size_t i = 0; !elements && i + width < g.in(0).type().rank(); ++i)
    behind.push_back(static_cast<int64_t>(g.in(1).type().rank() - 1 + i));
  if (!behind.empty()) is_there = g.op("Unsqueeze", {is_there, g.ints(behind)});
  return g.op("Where", {is_there, taken, g.number(0, dy.dtype())});
}

// What was written over has no gradient; what was written or added has that of its place.
Status scatter_vjp(Gradients& g) {
  std::string_view how = g.of().attr_text("reduction", "none");
  Value dy = g.cotangent();
  Places places(g);
  if (how == "max" || how == "min") return extreme_vjp(g, places);
  if (how == "mul") return product_vjp(g, places);
  if (how != "none" && how != "add")
    return invalid(cat("reduction: expected one of none, add, mul, max, min, got ", how));
  if (g.wanted(0)) g.set(0, how == "add" ? dy : places.put(dy, g.zeros_like(g.in(2)), "none"));
  if (g.wanted(2)) g.set(2, how == "add" ? places.taken(dy) : written_vjp(g, places, dy));
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
            .shape = shape<elements_shape, "x: T[i'..], indices: int[i..], updates: T[i..]">,
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
