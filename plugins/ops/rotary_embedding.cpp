// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding (Su et al. 2021): pairs of numbers of a head turn by an angle of their position.
#include <algorithm>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

// Whether the first two of `dims` are these, as far as known.
bool has_rows(const Dims& dims, const Dim& batch, const Dim& length) {
  auto same = [](const Dim& a, const Dim& b) {
    return !a.known() || !b.known() || *a.value == *b.value;
  };
  return dims.size() >= 2 && same(dims[0], batch) && same(dims[1], length);
}
// A row of one sequence does not stand for those of others: broadcasting would make them.
Status rotary_shape(EditView edit, Node node) {
  Type x = node.input(0).type(), ids = node.input(3).type();
  if (x.ranked && x.rank() != 3 && x.rank() != 4)
    return invalid(cat("x: expected rank 3 or 4, got ", x.rank()));
  const Dims dims = x.ranked ? dims_of(x) : Dims(3);
  const Dim batch = dims[0], length = dims[dims.size() - 2];
  if (node.input(3) && ids.ranked && !has_rows(dims_of(ids), batch, length))
    return invalid(cat("position_ids: expected [batch, s] of x, ", type_text(x)));
  for (uint64_t i : {1, 2}) {
    Type angles = node.input(i).type();
    if (!node.input(3) && angles.ranked && !has_rows(dims_of(angles), batch, length))
      return invalid(cat("cos_cache, sin_cache: expected [batch, s, half] of x, ", type_text(x)));
  }
  return set_output(edit, node, 0, x);
}

// x is [batch, heads, s, size], or packed: [batch, s, heads*size].
struct Rotary {
  int64_t batch, heads, length, size, half;
  bool packed, interleaved;
  int64_t at(int64_t b, int64_t h, int64_t s) const {
    return (packed ? (b * length + s) * heads + h : (b * heads + h) * length + s) * size;
  }
};

// cos_cache, sin_cache: [positions, half] where position_ids pick their rows, else [batch, s,
// half].
Status check_caches(const Call& call, const Rotary& r) {
  std::span<const int64_t> cache = call.shape(1);
  bool by_id = call.has(3);
  bool fits = cache.size() == (by_id ? 2u : 3u) && cache.back() == r.half &&
              to_vector(cache) == to_vector(call.shape(2));
  if (fits && !by_id) fits = cache[0] == r.batch && cache[1] == r.length;
  if (!fits)
    return invalid(cat("cos_cache, sin_cache: expected one shape, ",
                       by_id ? "[positions, " : "[batch, s, ", r.half, "]"));
  if (by_id && element_count(call.in(3)) != r.batch * r.length)
    return invalid(cat("position_ids: expected ", r.batch * r.length, " numbers"));
  return {};
}

Result<Rotary> rotary_of(const Call& call) {
  std::span<const int64_t> x = call.shape(0);
  bool packed = x.size() == 3;
  int64_t heads = call.node().attr_int("num_heads");
  if (!packed && x.size() != 4) return invalid(cat("x: expected rank 3 or 4, got ", x.size()));
  if (packed && (heads < 1 || x[2] % heads != 0))
    return invalid(cat("num_heads: expected a divisor of ", x[2], ", got ", heads));
  Rotary r{x[0],
           packed ? heads : x[1],
           packed ? x[1] : x[2],
           packed ? x[2] / heads : x[3],
           0,
           packed,
           call.node().attr_int("interleaved") != 0};
  int64_t rotated = call.node().attr_int("rotary_embedding_dim");
  if (rotated == 0) rotated = r.size;
  if (rotated < 0 || rotated > r.size || rotated % 2 != 0)
    return invalid(
        cat("rotary_embedding_dim: expected an even number to ", r.size, ", got ", rotated));
  r.half = rotated / 2;
  TN_CHECK(check_caches(call, r));
  return r;
}

Status rotary_ref(const Call& call) {
  TN_TRY(rotary, rotary_of(call));
  std::vector<int64_t> ids = call.has(3) ? read_ints(call.in(3)) : std::vector<int64_t>();
  for (int64_t id : ids)
    if (id < 0 || id >= call.shape(1)[0])
      return {TN_OUT_OF_RANGE,
              cat("position_ids: expected 0..", call.shape(1)[0] - 1, ", got ", id)};
  TN_TRY(out, call.out(0, call.dtype(0), call.shape(0)));
  return dispatch<kFloats>(call.dtype(0), [&, &r = rotary, &result = out]<class T>() -> Status {
    const T *cosines = call.data<T>(1), *sines = call.data<T>(2);
    auto number = [](T value) { return static_cast<double>(value); };
    for (int64_t row = 0; row < r.batch * r.heads * r.length; ++row) {
      int64_t s = row % r.length, h = row / r.length % r.heads, b = row / r.length / r.heads;
      const T* x = call.data<T>(0) + r.at(b, h, s);
      T* y = data_of<T>(result) + r.at(b, h, s);
      std::copy(x, x + r.size, y);
      int64_t place = b * r.length + s;
      int64_t angle = (ids.empty() ? place : ids[static_cast<size_t>(place)]) * r.half;
      for (int64_t i = 0; i < r.half; ++i) {
        int64_t first = r.interleaved ? 2 * i : i, second = r.interleaved ? first + 1 : i + r.half;
        double c = number(cosines[angle + i]), d = number(sines[angle + i]);
        y[first] = static_cast<T>(c * number(x[first]) - d * number(x[second]));
        y[second] = static_cast<T>(d * number(x[first]) + c * number(x[second]));
      }
    }
    return {};
  });
}

Result<Value> slice_last(EditView edit, Value x, int64_t from, int64_t to, int64_t step = 1) {
  TN_TRY(starts, edit.ints({from}));
  TN_TRY(ends, edit.ints({to}));
  TN_TRY(axes, edit.ints({-1}));
  TN_TRY(steps, edit.ints({step}));
  return edit.op("Slice", {x, starts, ends, axes, steps});
}

// a*b - c*d, or a*b + c*d.
Result<Value> rotated(EditView edit, const char* join, Value a, Value b, Value c, Value d) {
  TN_TRY(first, edit.op("Mul", {a, b}));
  TN_TRY(second, edit.op("Mul", {c, d}));
  return edit.op(join, {first, second});
}

Result<std::vector<Value>> rotary_decompose(EditView edit, Node node) {
  Value x = node.input(0), angles[2] = {node.input(1), node.input(2)};
  Type type = x.type();
  int64_t heads = node.attr_int("num_heads");
  bool packed = type.rank() == 3;
  if (!type.ranked || type.dims.back() < 0 || (packed && heads < 1))
    return unsupported("decomposed only where rank and size of a head are known");
  int64_t size = packed ? type.dims.back() / heads : type.dims.back();
  int64_t all = node.attr_int("rotary_embedding_dim");
  if (all == 0) all = size;
  TN_TRY(axis, edit.ints({packed ? 2 : 1}));
  for (Value& angle : angles) {
    if (node.input(3)) {
      TN_TRY(chosen, edit.op("Gather", {angle, node.input(3)}));
      angle = chosen;
    }
    TN_TRY(wide, edit.op("Unsqueeze", {angle, axis}));
    angle = wide;
  }
  if (packed) {
    TN_TRY(shape, edit.ints({0, 0, heads, size}));
    TN_TRY(split, edit.op("Reshape", {x, shape}));
    x = split;
  }
  bool interleaved = node.attr_int("interleaved") != 0;
  TN_TRY(a, slice_last(edit, x, 0, interleaved ? all : all / 2, interleaved ? 2 : 1));
  TN_TRY(b, slice_last(edit, x, interleaved ? 1 : all / 2, all, interleaved ? 2 : 1));
  TN_TRY(real, rotated(edit, "Sub", angles[0], a, angles[1], b));
  TN_TRY(imaginary, rotated(edit, "Add", angles[1], a, angles[0], b));
  std::vector<Value> parts{real, imaginary};
  if (interleaved) {
    TN_TRY(last, edit.ints({-1}));
    for (Value& part : parts) {
      TN_TRY(wide, edit.op("Unsqueeze", {part, last}));
      part = wide;
    }
    TN_TRY(pairs, edit.op("Concat", parts, {{"axis", -1}}));
    TN_TRY(shape, edit.ints({0, 0, 0, all}));
    TN_TRY(flat, edit.op("Reshape", {pairs, shape}));
    parts = {flat};
  }
  if (all < size) {
    TN_TRY(rest, slice_last(edit, x, all, size));
    parts.push_back(rest);
  }
  Value y = parts[0];
  if (parts.size() > 1) {
    TN_TRY(joined, edit.op("Concat", parts, {{"axis", -1}}));
    y = joined;
  }
  if (packed) {
    TN_TRY(shape, edit.ints({0, 0, heads * size}));
    TN_TRY(flat, edit.op("Reshape", {y, shape}));
    y = flat;
  }
  return std::vector<Value>{y};
}

Result<Node> rotary_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t batch = random.integer(1, 2), heads = random.integer(1, 3), s = random.integer(1, 4);
  int64_t half = random.integer(1, 3), size = 2 * half + (random.coin() ? 2 : 0);
  bool packed = random.coin(), by_id = random.coin();
  TN_TRY(x, random.input(TN_F32, packed ? std::vector<int64_t>{batch, s, heads * size}
                                        : std::vector<int64_t>{batch, heads, s, size}));
  std::vector<int64_t> cache =
      by_id ? std::vector<int64_t>{5, half} : std::vector<int64_t>{batch, s, half};
  TN_TRY(cosines, random.input(TN_F32, cache));
  TN_TRY(sines, random.input(TN_F32, cache));
  std::vector<Value> inputs{x, cosines, sines};
  if (by_id) {
    std::vector<int64_t> ids(static_cast<size_t>(batch * s));
    for (int64_t& id : ids)
      id = random.integer(0, 4);
    TN_TRY(at, edit.constant<int64_t>(TN_I64, {batch, s}, ids));
    inputs.push_back(at);
  }
  return edit.add({.type = "RotaryEmbedding",
                   .inputs = inputs,
                   .attrs = {{"num_heads", heads},
                             {"rotary_embedding_dim", 2 * half == size ? 0 : 2 * half},
                             {"interleaved", random.integer(0, 1)}}});
}

OpCost rotary_cost(Node node) {
  return {3 * output_elements(node), node_bytes(node)};
}

constexpr tn_op kRotary =
    op_row({.type = "RotaryEmbedding",
            .since = 23,
            .attributes = R"([{"name": "interleaved", "type": "int", "default": 0},
                              {"name": "num_heads", "type": "int"},
                              {"name": "rotary_embedding_dim", "type": "int", "default": 0}])",
            .shape = shape<rotary_shape,
                           "x: T, cos_cache: T[c..], sin_cache: T[c..], position_ids: int[b s]? ; "
                           "T = float">,
            .decompose = decompose<rotary_decompose>,
            .cost = cost<rotary_cost>,
            .ref = ref<rotary_ref>,
            .sample = sample<rotary_sample>});

}  // namespace

TENON_OPS(rotary_embedding, &kRotary)

}  // namespace tenon::ops
