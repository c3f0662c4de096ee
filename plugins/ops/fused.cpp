// SPDX-License-Identifier: Apache-2.0
#include "fused.hpp"

#include <cmath>

#include "attention.hpp"

namespace tenon::ops::fused {

bool is_read(Node node, uint64_t i) {
  return node.output(i).is_used();
}
Status expect_unread(Node node, uint64_t i, std::string_view name) {
  if (!is_read(node, i)) return {};
  return unsupported(cat("result ", name, ": expected that nobody reads it"));
}
Status expect_zero(Node node, std::initializer_list<const char*> attributes) {
  for (const char* name : attributes)
    if (node.attr_int(name) != 0)
      return unsupported(cat("attribute ", name, ": expected 0, got ", node.attr_int(name)));
  return {};
}
Status expect_absent(Node node, uint64_t i, std::string_view name) {
  return node.input(i) ? unsupported(cat("input ", name, ": expected none")) : Status();
}
Status expect_heads(Node node) {
  int64_t heads = node.attr_int("num_heads");
  return heads > 0 ? Status() : invalid(cat("num_heads: expected at least 1, got ", heads));
}
Result<Value> random_mask(Sampler& random, int64_t rows, int64_t keys) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < rows * keys; ++i)
    values.push_back(i % keys == 0 || random.coin());
  return random.edit().constant<int32_t>(TN_I32, {rows, keys}, values);
}

Result<std::vector<Value>> made(Builder& b, Value y) {
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}
Value dim_of(Builder& b, Value x, int64_t axis) {
  const Type type = x.type();
  const auto at = static_cast<size_t>(axis);
  if (type.ranked && at >= type.rank()) {
    b.fail(invalid(cat("expected ", axis + 1, " axes or more, got ", type_text(type))));
    return {};
  }
  if (type.ranked && type.dims[at] >= 0) return b.ints({type.dims[at]});
  return b.op("Shape", {x}, {{"start", axis}, {"end", axis + 1}});
}
Value positions(Builder& b, Value length, uint32_t dtype) {
  Value scalar = b.op("Squeeze", {length});
  return b.cast(b.op("Range", {b.number(0, TN_I64), scalar, b.number(1, TN_I64)}), dtype);
}

namespace {

// What is added to the scores [b, h, s, t]: `filter` where `is_hidden`, else 0; `axes` are those
// of the scores that is_hidden lacks.
Value added_where(Builder& b, Value is_hidden, double filter, uint32_t dtype, Value axes) {
  Value added = b.op("Where", {is_hidden, b.number(filter, dtype), b.number(0, dtype)});
  return b.op("Unsqueeze", {added, axes});
}
// length: how many keys there are, one int64; batch: that of the queries, or not known.
Value mask_bias(Builder& b, Node node, Value mask, const Dim& batch, Value length, uint32_t dtype) {
  const double filter = node.attr_float("mask_filter_value", -10000);
  Type type = b.ranked(mask, node.type());
  const size_t rank = type.rank();
  if (rank == 2 || rank == 3) {
    Value is_hidden = b.op("LessOrEqual", {mask, b.cast(b.number(0, TN_I64), mask.dtype())});
    return added_where(b, is_hidden, filter, dtype, rank == 2 ? b.ints({1, 2}) : b.ints({1}));
  }
  Dims dims = dims_of(type);
  const bool is_ends = rank == 1 && dims[0] == batch;
  const bool has_starts = rank == 1 && dims[0].known() && dims[0] == batch * Dim(2);
  if (!is_ends && !has_starts) {
    b.fail(unsupported(cat(node.type(),
                           ": expected a mask [batch, keys], [batch, queries, keys], [batch] or "
                           "[2*batch] whose sizes are known here")));
    return {};
  }
  Value at = positions(b, length, TN_I32), axis = b.ints({1});
  auto column = [&](Value one_each) { return b.op("Unsqueeze", {b.cast(one_each, TN_I32), axis}); };
  if (is_ends)
    return added_where(b, b.op("GreaterOrEqual", {at, column(mask)}), filter, dtype,
                       b.ints({1, 2}));
  const int64_t n = *batch.value;
  auto part = [&](int64_t from) {
    return column(b.op("Slice", {mask, b.ints({from}), b.ints({from + n})}));
  };
  Value is_hidden =
      b.op("Or", {b.op("GreaterOrEqual", {at, part(0)}), b.op("Less", {at, part(n)})});
  return added_where(b, is_hidden, filter, dtype, b.ints({1, 2}));
}

// 0 where a key is not behind its query, else minus infinity: added to the scores, [s, t].
Value causal_bias(Builder& b, Value q, Value length, Value past, uint32_t dtype) {
  Value queries = b.op("Unsqueeze", {positions(b, dim_of(b, q, 2), TN_I32), b.ints({1})});
  if (past) queries = b.add(queries, b.cast(dim_of(b, past, 2), TN_I32));
  Value is_behind = b.op("Greater", {positions(b, length, TN_I32), queries});
  return b.op("Where", {is_behind, b.number(attention::kMinusInf, dtype), b.number(0, dtype)});
}
// [b, s, heads*d] as [b, heads, s, d].
Value by_heads(Builder& b, Node node, Value x) {
  if (b.ranked(x, node.type()).rank() == 4) return x;
  const int64_t heads = node.attr_int("num_heads");
  return b.transpose(b.op("Reshape", {x, b.ints({0, 0, heads, -1})}), {0, 2, 1, 3});
}

}  // namespace

Attended attend(Builder& b, Node node, const Operands& x) {
  Value q = by_heads(b, node, x.q), k = by_heads(b, node, x.k), v = by_heads(b, node, x.v);
  if (x.past_key) {
    k = b.op("Concat", {x.past_key, k}, {{"axis", 2}});
    v = b.op("Concat", {x.past_value, v}, {{"axis", 2}});
  }
  Type queries = b.ranked(q, node.type()), keys = b.ranked(k, node.type());
  if (!queries.ranked || !keys.ranked) return {};
  double scale = node.attr_float("scale");
  if (scale == 0 && queries.dims[3] < 1) {
    b.fail(unsupported(cat(node.type(), ": the size of a head must be known here")));
    return {};
  }
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(queries.dims[3]));
  const uint32_t dtype = q.dtype();
  // Scores of 16 bits might exceed the range before they are scaled.
  const bool is_early = TN_DTYPE_BITS(dtype) <= 16;
  if (is_early) q = b.mul(q, b.number(scale, dtype));
  Value scores = b.op("MatMul", {q, b.transpose(k, {0, 1, 3, 2})});
  if (!is_early) scores = b.mul(scores, b.number(scale, dtype));
  if (x.bias) scores = b.add(scores, x.bias);
  Value length = dim_of(b, k, 2);
  if (x.mask)
    scores = b.add(scores, mask_bias(b, node, x.mask, dims_of(queries)[0], length, dtype));
  if (node.attr_int("unidirectional") != 0)
    scores = b.add(scores, causal_bias(b, q, length, x.past_key, dtype));
  Value context = b.op("MatMul", {b.op("Softmax", {scores}, {{"axis", -1}}), v});
  Value y = b.op("Reshape", {b.transpose(context, {0, 2, 1, 3}), b.ints({0, 0, -1})});
  return {y, k, v};
}

}  // namespace tenon::ops::fused
