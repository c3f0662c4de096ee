// SPDX-License-Identifier: Apache-2.0
// Choosing and ordering slices: Compress, Unique, ReverseSequence.
#include <algorithm>

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "distinct.hpp"
#include "matrices.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

bool has_axis(Node node) {
  return node.attr("axis").tag == TN_ANY_I64;
}

Status compress_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!has_axis(node)) return set_output(edit, node, 0, x.dtype, Dims(1));
  if (!x.ranked) return set_output(edit, node, 0, x);
  TN_TRY(axis, axis_in(node.attr_int("axis"), x.rank()));
  Dims out = dims_of(x);
  out[static_cast<size_t>(axis)] = Dim();
  return set_output(edit, node, 0, x.dtype, out);
}

// The slices `at` of x along an axis, or of all its elements.
Status take(const Call& call, uint64_t i, const std::vector<int64_t>& at) {
  std::vector<int64_t> shape = to_vector(call.shape(0));
  int64_t axis = 0;
  if (has_axis(call.node())) {
    TN_TRY(found, axis_in(call.node().attr_int("axis"), shape.size()));
    axis = found;
  } else {
    shape = {element_count(shape)};
  }
  AxisSplit split(shape, axis);
  shape[static_cast<size_t>(axis)] = static_cast<int64_t>(at.size());
  TN_TRY(out, call.out(i, call.dtype(0), shape));
  Cells from(call.in(0)), to(out);
  auto n = static_cast<int64_t>(at.size());
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t k = 0; k < n; ++k)
      to.copy((o * n + k) * split.inner, from,
              (o * split.size + at[static_cast<size_t>(k)]) * split.inner, split.inner);
  to.flush();
  return {};
}

Status compress_ref(const Call& call) {
  int64_t size = element_count(call.in(0));
  if (has_axis(call.node())) {
    TN_TRY(axis, axis_in(call.node().attr_int("axis"), call.shape(0).size()));
    size = call.shape(0)[static_cast<size_t>(axis)];
  }
  int64_t n = element_count(call.in(1));
  if (n > size) return invalid(cat("condition: expected at most ", size, " flags, got ", n));
  // No branch: flags are in no order that could be foreseen.
  std::vector<int64_t> at(static_cast<size_t>(n) + 1);
  const uint8_t* flags = call.data<uint8_t>(1);
  size_t n_taken = 0;
  for (int64_t i = 0; i < n; ++i) {
    at[n_taken] = i;
    n_taken += flags[i] != 0 ? 1 : 0;
  }
  at.resize(n_taken);
  return take(call, 0, at);
}

Result<Node> compress_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 3);
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(flags, random.input(TN_BOOL, {random.integer(1, dims[0])}));
  std::vector<Attr> attrs;
  if (random.coin()) attrs.emplace_back("axis", 0);
  return edit.add({.type = "Compress", .inputs = {x, flags}, .attrs = attrs});
}

Status unique_shape(EditView edit, Node node) {
  TN_CHECK(compress_shape(edit, node));
  for (uint64_t i = 1; i < 4; ++i)
    TN_CHECK(set_output(edit, node, i, TN_I64, Dims(1)));
  return {};
}

template <class T>
Distinct distinct_of(const T* x, const AxisSplit& split, bool is_sorted) {
  using W = std::conditional_t<std::is_same_v<T, bool>, uint64_t, Wide<T>>;
  if (split.outer == 1 && split.inner == 1)
    return distinct_numbers(split.size, is_sorted, [&](int64_t i) { return static_cast<W>(x[i]); });
  return distinct_slices(split.size, is_sorted, [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < split.outer; ++o) {
      for (int64_t i = 0; i < split.inner; ++i) {
        auto left = static_cast<W>(x[(o * split.size + a) * split.inner + i]);
        auto right = static_cast<W>(x[(o * split.size + b) * split.inner + i]);
        if (is_before(left, right)) return true;
        if (is_before(right, left)) return false;
      }
    }
    return false;
  });
}

Status unique_ref(const Call& call) {
  AxisSplit split(std::vector<int64_t>{element_count(call.in(0))}, 0);
  if (has_axis(call.node())) {
    TN_TRY(axis, axis_in(call.node().attr_int("axis"), call.shape(0).size()));
    split = AxisSplit(call.shape(0), axis);
  }
  Distinct found;
  TN_CHECK(dispatch<kAll>(call.dtype(0), [&]<class T>() -> Status {
    const bool is_sorted = call.node().attr_int("sorted", 1) != 0;
    found = distinct_of(call.data<T>(0), split, is_sorted);
    return {};
  }));
  TN_CHECK(take(call, 0, found.first));
  const std::vector<int64_t>* lists[] = {&found.first, &found.of, &found.count};
  for (uint64_t i = 1; i < 4; ++i) {
    if (!call.node().output(i)) continue;
    const std::vector<int64_t>& list = *lists[i - 1];
    TN_TRY(out, call.out(i, TN_I64, {static_cast<int64_t>(list.size())}));
    std::copy(list.begin(), list.end(), data_of<int64_t>(out));
  }
  return {};
}

Result<Node> unique_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(random.coin() ? TN_I32 : TN_F32, {random.integer(1, 5), 2}));
  std::vector<Attr> attrs{{"sorted", random.integer(0, 1)}};
  if (random.coin()) attrs.emplace_back("axis", random.integer(0, 1));
  return edit.add({.type = "Unique", .inputs = {x}, .attrs = attrs, .n_outputs = 4});
}

Status reverse_shape(EditView edit, Node node) {
  Type x = node.input(0).type(), lengths = node.input(1).type();
  if (x.ranked) {
    TN_TRY(batch, axis_in(node.attr_int("batch_axis", 1), x.rank(), "batch_axis"));
    TN_TRY(time, axis_in(node.attr_int("time_axis", 0), x.rank(), "time_axis"));
    if (batch == time) return invalid("batch_axis: expected another than time_axis");
    int64_t size = x.dims[static_cast<size_t>(batch)];
    if (lengths.is_static() && size >= 0 && lengths.elements() != size)
      return invalid(cat("lengths: expected ", size, " numbers, got ", lengths.elements()));
  }
  return set_output(edit, node, 0, node.input(0).type());
}

Status reverse_ref(const Call& call) {
  std::span<const int64_t> shape = call.shape(0);
  TN_TRY(batch, axis_in(call.node().attr_int("batch_axis", 1), shape.size(), "batch_axis"));
  TN_TRY(time, axis_in(call.node().attr_int("time_axis", 0), shape.size(), "time_axis"));
  std::vector<int64_t> lengths = read_ints(call.in(1)), strides = dense_strides(shape);
  auto b = static_cast<size_t>(batch), t = static_cast<size_t>(time);
  if (b == t || static_cast<int64_t>(lengths.size()) != shape[b])
    return invalid(
        "expected another batch_axis than time_axis, and a length for each of the batch");
  for (int64_t length : lengths)
    if (length < 0 || length > shape[t])
      return invalid(cat("sequence_lens: expected 0..", shape[t], ", got ", length));
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  Cells from(call.in(0)), to(out);
  Odometer at(shape);
  for (int64_t i = 0, n = element_count(shape); i < n; ++i, at.next()) {
    int64_t length = lengths[static_cast<size_t>(at[b])];
    int64_t back = at[t] < length ? length - 1 - at[t] : at[t];
    to.copy(i, from, i + (back - at[t]) * strides[t]);
  }
  to.flush();
  return {};
}

Result<Node> reverse_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t steps = random.integer(1, 5), batch = random.integer(1, 3);
  bool first = random.coin();
  TN_TRY(x, random.input(TN_F32, {first ? batch : steps, first ? steps : batch, 2}));
  std::vector<int64_t> lengths(static_cast<size_t>(batch));
  for (int64_t& length : lengths)
    length = random.integer(1, steps);
  TN_TRY(given, edit.ints(lengths));
  return edit.add({.type = "ReverseSequence",
                   .inputs = {x, given},
                   .attrs = {{"batch_axis", first ? 0 : 1}, {"time_axis", first ? 1 : 0}}});
}

// Each gradient goes back to where its slice was.
Status compress_vjp(Gradients& g) {
  Value x = g.in(0), dy = g.cotangent();
  Value places = g.transpose(g.op("NonZero", {g.in(1)}), {1, 0});
  auto scattered = [&](Value like, Value rows) {
    return g.op("ScatterND", {g.zeros_like(like), places, rows}, {{"reduction", "add"}});
  };
  if (!has_axis(g.of())) {
    g.set(0, g.reshape_like(scattered(g.op("Reshape", {x, g.ints({-1})}), dy), x));
    return {};
  }
  Type type = g.ranked(x, "Compress");
  TN_CHECK(g.status());
  TN_TRY(axis, axis_in(g.of().attr_int("axis"), type.rank()));
  std::vector<int64_t> turn = swapped(type.rank(), static_cast<size_t>(axis), 0);
  g.set(0, g.transpose(scattered(g.transpose(x, turn), g.transpose(dy, turn)), turn));
  return {};
}
// It is its own inverse.
Status reverse_vjp(Gradients& g) {
  Node made = again(g, g.of(), {g.cotangent(), g.in(1)});
  if (made) g.set(0, made.output());
  return {};
}

Status reverse_batch(Batching& b) {
  if (b.batched(1)) return unsupported("lengths: expected the same for all examples");
  size_t rank = b.ranked(b.of().input(0), "ReverseSequence").rank();
  std::vector<int64_t> axes =
      shifted({b.of().attr_int("batch_axis", 1), b.of().attr_int("time_axis", 0)}, rank);
  Node made =
      again(b, b.of(), {b.in(0), b.in(1)}, {{"batch_axis", axes[0]}, {"time_axis", axes[1]}});
  if (made) b.set(0, made.output());
  return {};
}

constexpr tn_op kCompress = op_row({.type = "Compress",
                                    .since = 28,
                                    .traits = TN_OP_DATA_SHAPE,
                                    .attributes = R"([{"name": "axis", "type": "int"}])",
                                    .quant = "same_scale",
                                    .shape = shape<compress_shape, "x: any, condition: bool[n]">,
                                    .cost = cost<move_cost>,
                                    .ref = ref<compress_ref>,
                                    .sample = sample<compress_sample>,
                                    .vjp = vjp<compress_vjp>,
                                    .vjp_inputs = 2,
                                    .vjp_outputs = 0});
constexpr tn_op kUnique = op_row({.type = "Unique",
                                  .since = 28,
                                  .traits = TN_OP_DATA_SHAPE | TN_OP_MIXES_BATCH,
                                  .attributes = R"([{"name": "axis", "type": "int"},
                                {"name": "sorted", "type": "int", "default": 1}])",
                                  .shape = shape<unique_shape, "x: number|bool">,
                                  .cost = cost<move_cost>,
                                  .ref = ref<unique_ref>,
                                  .sample = sample<unique_sample>});
constexpr tn_op kReverse =
    op_row({.type = "ReverseSequence",
            .since = 28,
            .attributes = R"([{"name": "batch_axis", "type": "int", "default": 1},
                              {"name": "time_axis", "type": "int", "default": 0}])",
            .quant = "same_scale",
            .shape = shape<reverse_shape, "x: any, lengths: int[b]">,
            .cost = cost<move_cost>,
            .ref = ref<reverse_ref>,
            .sample = sample<reverse_sample>,
            .vjp = vjp<reverse_vjp>,
            .vjp_inputs = 2,
            .vjp_outputs = 0,
            .batch = batch<reverse_batch>});

}  // namespace

TENON_OPS(select, &kCompress, &kUnique, &kReverse)

}  // namespace tenon::ops
