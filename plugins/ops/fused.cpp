// SPDX-License-Identifier: Apache-2.0
#include "fused.hpp"

namespace tenon::ops::fused {

bool is_read(Node node, uint64_t i) {
  return i < node.n_outputs() &&
         (node.output(i).consumer_count() > 0 || node.output(i).is_output());
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

namespace {

Value dim_of(Builder& b, Value x, int64_t axis) {
  if (int64_t size = x.type().dims[static_cast<size_t>(axis)]; size >= 0) return b.ints({size});
  return b.op("Shape", {x}, {{"start", axis}, {"end", axis + 1}});
}
// 0 ... length-1 as int32; length: one int64.
Value positions(Builder& b, Value length) {
  Value scalar = b.op("Squeeze", {length});
  return b.cast(b.op("Range", {b.number(0, TN_I64), scalar, b.number(1, TN_I64)}), TN_I32);
}
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
  Value at = positions(b, length), axis = b.ints({1});
  auto rows = [&](int64_t from) {
    int64_t n = *batch.value;
    Value part = has_starts ? b.op("Slice", {mask, b.ints({from}), b.ints({from + n})}) : mask;
    return b.op("Unsqueeze", {b.cast(part, TN_I32), axis});
  };
  Value is_hidden = b.op("GreaterOrEqual", {at, rows(0)});
  if (has_starts) is_hidden = b.op("Or", {is_hidden, b.op("Less", {at, rows(*batch.value)})});
  return added_where(b, is_hidden, filter, dtype, b.ints({1, 2}));
}

}  // namespace

Node attend(Builder& b, Node node, const Operands& x, bool has_present) {
  Type q = b.ranked(x.q, node.type()), k = b.ranked(x.k, node.type());
  if (!q.ranked || !k.ranked) return {};
  Value added = x.bias;
  if (x.mask) {
    Value length = dim_of(b, x.k, static_cast<int64_t>(k.rank()) - 2);
    if (x.past_key) {
      b.ranked(x.past_key, node.type());
      length = b.add(length, dim_of(b, x.past_key, 2));
    }
    Value hidden = mask_bias(b, node, x.mask, dims_of(q)[0], length, x.q.dtype());
    added = added ? b.add(added, hidden) : hidden;
  }
  std::vector<Value> inputs{x.q, x.k, x.v, added, x.past_key, x.past_value};
  while (!inputs.back())
    inputs.pop_back();
  const int64_t heads = node.attr_int("num_heads");
  std::vector<Attr> attrs{{"q_num_heads", heads},
                          {"kv_num_heads", heads},
                          {"is_causal", node.attr_int("unidirectional")}};
  if (double scale = node.attr_float("scale"); scale != 0) attrs.emplace_back("scale", scale);
  return b.node({.type = "Attention",
                 .inputs = inputs,
                 .attrs = attrs,
                 .n_outputs = has_present ? 3u : 1u});
}

}  // namespace tenon::ops::fused
