// SPDX-License-Identifier: Apache-2.0
// ArgMax, ArgMin and TopK.
#include <algorithm>
#include <numeric>

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status arg_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, unranked(TN_I64));
  TN_TRY(axis, axis_in(node.attr_int("axis"), x.rank()));
  Dims out = dims_of(x);
  if (node.attr_int("keepdims", 1))
    out[static_cast<size_t>(axis)] = 1;
  else
    out.erase(out.begin() + axis);
  return set_output(edit, node, 0, TN_I64, out);
}

// Whether a stands before b in what is asked for: NaN before any number, as in NumPy.
template <class W>
bool is_more_extreme(W a, W b, bool largest) {
  if (a != a || b != b) return a != a && b == b;
  return largest ? a > b : a < b;
}

Status arg_ref(const Call& call, bool largest) {
  std::vector<int64_t> shape = to_vector(call.shape(0));
  TN_TRY(axis, axis_in(call.node().attr_int("axis"), shape.size()));
  AxisSplit split(shape, axis);
  if (split.size == 0) return invalid("x: expected elements along the axis, got none");
  if (call.node().attr_int("keepdims", 1))
    shape[static_cast<size_t>(axis)] = 1;
  else
    shape.erase(shape.begin() + axis);
  bool last = call.node().attr_int("select_last_index") != 0;
  TN_TRY(out, call.out(0, TN_I64, shape));
  return dispatch<kNumeric>(call.dtype(0), [&]<class T>() -> Status {
    using W = Wide<T>;
    for (int64_t i = 0; i < split.outer * split.inner; ++i) {
      const T* x = call.data<T>(0) + i / split.inner * split.size * split.inner + i % split.inner;
      int64_t best = 0;
      for (int64_t k = 1; k < split.size; ++k) {
        W a = static_cast<W>(x[k * split.inner]), b = static_cast<W>(x[best * split.inner]);
        if (is_more_extreme(a, b, largest) || (last && !is_more_extreme(b, a, largest))) best = k;
      }
      data_of<int64_t>(out)[i] = best;
    }
    return {};
  });
}
Status arg_max_ref(const Call& call) {
  return arg_ref(call, true);
}
Status arg_min_ref(const Call& call) {
  return arg_ref(call, false);
}

Result<Node> arg_sample(EditView edit, uint64_t seed, std::string_view type) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4);
  auto rank = static_cast<int64_t>(dims.size());
  TN_TRY(x, random.input(TN_F32, dims));
  return edit.add(
      {.type = type,
       .inputs = {x},
       .attrs = {{"axis", random.integer(-rank, rank - 1)}, {"keepdims", random.integer(0, 1)}}});
}
Result<Node> arg_max_sample(EditView edit, uint64_t seed) {
  return arg_sample(edit, seed, "ArgMax");
}
Result<Node> arg_min_sample(EditView edit, uint64_t seed) {
  return arg_sample(edit, seed, "ArgMin");
}

Status top_k_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) {
    TN_CHECK(set_output(edit, node, 0, x));
    return set_output(edit, node, 1, unranked(TN_I64));
  }
  TN_TRY(axis, axis_in(node.attr_int("axis", -1), x.rank()));
  Dims out = dims_of(x);
  std::optional<Dims> k = contents(node.input(1));
  const Dim& size = out[static_cast<size_t>(axis)];
  if (k && k->size() == 1 && (*k)[0].known()) {
    int64_t wanted = *(*k)[0].value;
    if (wanted < 0 || (size.known() && wanted > *size.value))
      return invalid(cat("k: expected a number in 0..", size.known() ? *size.value : INT64_MAX,
                         ", got ", wanted));
  }
  out[static_cast<size_t>(axis)] = k && k->size() == 1 ? (*k)[0] : Dim();
  TN_CHECK(set_output(edit, node, 0, x.dtype, out));
  return set_output(edit, node, 1, TN_I64, out);
}

// Equal elements keep the order of their indices, as do those that need not be sorted.
Status top_k_ref(const Call& call) {
  std::vector<int64_t> shape = to_vector(call.shape(0));
  TN_TRY(axis, axis_in(call.node().attr_int("axis", -1), shape.size()));
  AxisSplit split(shape, axis);
  std::vector<int64_t> wanted = read_ints(call.in(1));
  if (wanted.size() != 1 || wanted[0] < 0 || wanted[0] > split.size)
    return invalid(cat("k: expected one number in 0..", split.size));
  int64_t k = shape[static_cast<size_t>(axis)] = wanted[0];
  bool largest = call.node().attr_int("largest", 1) != 0;
  bool sorted = call.node().attr_int("sorted", 1) != 0;
  TN_TRY(values, call.out(0, call.dtype(0), shape));
  DLTensor indices{};
  const bool has_indices = call.node().n_outputs() > 1;  // files may leave them out
  if (has_indices) {
    TN_TRY(made, call.out(1, TN_I64, shape));
    indices = made;
  }
  return dispatch<kNumeric>(call.dtype(0), [&]<class T>() -> Status {
    using W = Wide<T>;
    std::vector<int64_t> order(static_cast<size_t>(split.size));
    for (int64_t i = 0; i < split.outer * split.inner; ++i) {
      int64_t o = i / split.inner, in = i % split.inner;
      const T* x = call.data<T>(0) + o * split.size * split.inner + in;
      auto at = [&](int64_t index) { return static_cast<W>(x[index * split.inner]); };
      // NaN counts as the largest number, so that the order is one.
      auto above = [&](W a, W b) { return a > b || (a != a && b == b); };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return largest ? above(at(a), at(b)) : above(at(b), at(a));
      });
      if (!sorted) std::sort(order.begin(), order.begin() + k);
      for (int64_t n = 0; n < k; ++n) {
        int64_t to = (o * k + n) * split.inner + in;
        data_of<T>(values)[to] = x[order[static_cast<size_t>(n)] * split.inner];
        if (has_indices) data_of<int64_t>(indices)[to] = order[static_cast<size_t>(n)];
      }
    }
    return {};
  });
}

Result<Node> top_k_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 3);
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(k, edit.ints({random.integer(1, dims.back())}));
  return edit.add({.type = "TopK",
                   .inputs = {x, k},
                   .attrs = {{"largest", random.integer(0, 1)}, {"sorted", random.integer(0, 1)}},
                   .n_outputs = 2});
}

Status top_k_vjp(Gradients& g) {
  if (!g.cotangent()) return {};
  Value indices = g.out(1);
  if (!indices) {  // files may leave them out
    Node whole = g.node({.type = "TopK",
                         .inputs = {g.in(0), g.in(1)},
                         .attrs = attributes_of(g.of()),
                         .n_outputs = 2});
    indices = whole ? whole.output(1) : Value{};
  }
  g.set(0, g.op("ScatterElements", {g.zeros_like(g.in(0)), indices, g.cotangent()},
                {{"axis", g.of().attr_int("axis", -1)}, {"reduction", "add"}}));
  return {};
}

#define ARG_ATTRIBUTES                                    \
  R"([{"name": "axis", "type": "int", "default": 0},)"    \
  R"({"name": "keepdims", "type": "int", "default": 1},)" \
  R"({"name": "select_last_index", "type": "int", "default": 0}])"
constexpr tn_op kArgMax = op_row({.type = "ArgMax",
                                  .since = 13,
                                  .attributes = ARG_ATTRIBUTES,
                                  .shape = shape<arg_shape, "x: number|bool">,
                                  .ref = ref<arg_max_ref>,
                                  .sample = sample<arg_max_sample>,
                                  .batch = batch<batch_first_by_axis>});
constexpr tn_op kArgMin = op_row({.type = "ArgMin",
                                  .since = 13,
                                  .attributes = ARG_ATTRIBUTES,
                                  .shape = shape<arg_shape, "x: number|bool">,
                                  .ref = ref<arg_min_ref>,
                                  .sample = sample<arg_min_sample>,
                                  .batch = batch<batch_first_by_axis>});
constexpr tn_op kTopK = op_row({.type = "TopK",
                                .since = 24,
                                .traits = TN_OP_DATA_SHAPE,
                                .attributes = R"([{"name": "axis", "type": "int", "default": -1},
                                                  {"name": "largest", "type": "int", "default": 1},
                                                  {"name": "sorted", "type": "int", "default": 1}])",
                                .shape = shape<top_k_shape, "x: number, k: int[one]">,
                                .ref = ref<top_k_ref>,
                                .sample = sample<top_k_sample>,
                                .vjp = vjp<top_k_vjp>,
                                .vjp_inputs = 0,
                                .vjp_outputs = 2,
                                .batch = batch<batch_first_by_axis>});

}  // namespace

TENON_OPS(arg_reduce, &kArgMax, &kArgMin, &kTopK)

}  // namespace tenon::ops
