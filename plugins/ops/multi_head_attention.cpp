// SPDX-License-Identifier: Apache-2.0
// MultiHeadAttention of ONNX Runtime's domain, which its transformer optimizer writes:
// operands may be packed and have the biases of their projections.
#include "fused.hpp"

namespace tenon::ops {
namespace {

using namespace fused;  // NOLINT(google-build-using-namespace): the same operator

enum MultiHeadInput : uint64_t {
  kQuery,
  kKey,
  kValue,
  kBias,
  kMask,
  kScoresBias,
  kPastKey,
  kPastValue,
  kPastLength,
  kIndirection
};

// Operands that are packed as [b, s, heads, n, d].
bool is_packed(Value x) {
  return x && x.type().ranked && x.type().rank() == 5;
}

// q, k, v: [b, heads, s, d] of this call, as far as known.
Status expect_fit(Node node, const Dims& q, const Dims& k, const Dims& v) {
  const Dim heads(node.attr_int("num_heads"));
  auto differ = [](const Dim& a, const Dim& b) {
    return a.known() && b.known() && *a.value != *b.value;
  };
  if (differ(k[1], heads) || differ(v[1], heads))
    return invalid(cat("key and value: expected ", *heads.value, " heads"));
  if (differ(k[2], v[2])) return invalid("expected key and value of one length");
  if (differ(q[3], k[3])) return invalid("expected heads of query and key of one size");
  Type bias = node.input(kBias).type();
  const Dim width = heads * (q[3] + k[3] + v[3]);
  if (node.input(kBias) && bias.ranked && differ(dims_of(bias)[0], width))
    return invalid(cat("bias: expected ", *width.value, " numbers, for query, key and value"));
  return {};
}

Status multi_head_shape(EditView edit, Node node) {
  TN_CHECK(expect_heads(node));
  TN_CHECK(expect_absent(node, kPastLength, "past_sequence_length"));
  TN_CHECK(expect_absent(node, kIndirection, "cache_indirection"));
  TN_CHECK(expect_unread(node, 3, "qk"));
  Type q = node.input(kQuery).type(), k = node.input(kKey).type(), v = node.input(kValue).type();
  const Dim heads(node.attr_int("num_heads"));
  if (!q.ranked || (node.input(kKey) && !k.ranked) || (node.input(kValue) && !v.ranked)) {
    for (uint64_t i = 0; i < 3; ++i)
      TN_CHECK(set_output(edit, node, i, unranked(q.dtype)));
    return {};
  }
  // [b, heads, s, d] of an operand of any form; parts: how many are packed in one.
  auto split = [&](const Type& type, int64_t parts) -> Result<Dims> {
    Dims dims = dims_of(type);
    if (dims.size() == 3) {
      if (dims[2].known() && *dims[2].value % *heads.value != 0)
        return invalid(
            cat("num_heads: expected a divisor of ", *dims[2].value, ", got ", *heads.value));
      return Dims{dims[0], heads, dims[1], quotient({dims[2]}, {heads})};
    }
    if (dims.size() == 4) return dims;
    if (dims.size() == 5 && dims[3].is(parts) && (!dims[2].known() || dims[2] == heads))
      return Dims{dims[0], heads, dims[1], dims[4]};
    return invalid(
        cat("expected [b, s, heads*d], [b, heads, s, d] or [b, s, heads, ", parts, ", d]"));
  };
  TN_TRY(a, split(q, 3));
  TN_TRY(c, node.input(kKey) ? split(k, 2) : Result<Dims>(a));
  TN_TRY(d, node.input(kValue) ? split(v, 1) : Result<Dims>(c));
  const bool is_whole = node.input(kKey) ? is_packed(node.input(kKey)) != bool(node.input(kValue))
                                         : is_packed(node.input(kQuery)) && !node.input(kValue);
  if (!is_whole) return invalid("expected query, key and value, or as many as are not packed");
  if (q.rank() == 4) return invalid("query: expected [b, s, heads*d] or [b, s, heads, 3, d]");
  TN_CHECK(expect_fit(node, a, c, d));
  if (node.input(kPastKey)) {
    Type past = node.input(kPastKey).type();
    c[2] = past.ranked && past.rank() == 4 ? c[2] + dims_of(past)[2] : Dim();
    d[2] = c[2];
  }
  TN_CHECK(set_output(edit, node, 0, q.dtype, {a[0], a[2], heads * d[3]}));
  TN_CHECK(set_output(edit, node, 1, q.dtype, c));
  return set_output(edit, node, 2, q.dtype, d);
}

// The parts of a packed operand, each [b, s, heads*d].
std::vector<Value> unpacked(Builder& b, Value x, int64_t parts) {
  Node split = b.node({.type = "Split",
                       .inputs = {x, b.ints(std::vector<int64_t>(size_t(parts), 1))},
                       .attrs = {{"axis", 3}},
                       .n_outputs = uint32_t(parts)});
  std::vector<Value> out;
  for (uint64_t i = 0; split && i < uint64_t(parts); ++i)
    out.push_back(b.op("Reshape", {split.output(i), b.ints({0, 0, -1})}));
  return out;
}
// Adds a slice of the projections' bias to each operand that was projected.
Status add_biases(Builder& b, Value bias, std::vector<Value*> operands) {
  std::vector<int64_t> sizes;
  for (Value* one : operands) {
    Type type = b.ranked(*one, "MultiHeadAttention");
    TN_CHECK(b.status());
    if (type.dims.back() < 0)
      return unsupported("MultiHeadAttention: the widths must be known where there is a bias");
    sizes.push_back(type.dims.back());
  }
  int64_t from = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    Value part = b.op("Slice", {bias, b.ints({from}), b.ints({from + sizes[i]})});
    *operands[i] = b.add(*operands[i], part);
    from += sizes[i];
  }
  return b.status();
}

Result<std::vector<Value>> multi_head_decompose(EditView edit, Node node) {
  Builder b(edit);
  std::vector<Value> all{node.input(kQuery), node.input(kKey), node.input(kValue)};
  if (is_packed(all[0])) all = unpacked(b, all[0], 3);
  if (is_packed(all[1])) {
    std::vector<Value> pair = unpacked(b, all[1], 2);
    all.resize(1);
    all.insert(all.end(), pair.begin(), pair.end());
  }
  TN_CHECK(b.status());
  // Keys and values that come by heads are those of another pass, which has added their biases.
  const bool is_cached = b.ranked(all[1], node.type()).rank() == 4;
  if (Value bias = node.input(kBias))
    TN_CHECK(add_biases(b, bias,
                        is_cached ? std::vector{&all[0]} : std::vector{&all[0], &all[1], &all[2]}));
  TN_CHECK(b.status());
  Attended made = attend(b, node,
                         {.q = all[0],
                          .k = all[1],
                          .v = all[2],
                          .past_key = node.input(kPastKey),
                          .past_value = node.input(kPastValue),
                          .mask = node.input(kMask),
                          .bias = node.input(kScoresBias)});
  TN_CHECK(b.status());
  std::vector<Value> out{made.y, made.key, made.value};
  out.resize(node.n_outputs(), made.y);
  return out;
}

Result<Node> multi_head_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  const int64_t heads = random.integer(1, 2), size = 2 * random.integer(1, 2);
  const int64_t batch = random.integer(1, 2), length = random.integer(1, 3), width = heads * size;
  const int64_t form = random.integer(0, 3);  // apart, cached, keys and values packed, all packed
  const std::vector<int64_t> rows{batch, length, width}, cached{batch, heads, length, size};
  std::vector<Value> inputs;
  auto add = [&](const std::vector<int64_t>& dims) -> Status {
    TN_TRY(x, random.input(TN_F32, dims));
    inputs.push_back(x);
    return {};
  };
  if (form == 3) {
    TN_CHECK(add({batch, length, heads, 3, size}));
  } else {
    TN_CHECK(add({batch, 2, width}));
    TN_CHECK(add(form == 2   ? std::vector{batch, length, heads, int64_t{2}, size}
                 : form == 1 ? cached
                             : rows));
    if (form < 2) TN_CHECK(add(form == 1 ? cached : rows));
  }
  inputs.resize(3);
  if (random.coin()) TN_CHECK(add({3 * width}));
  inputs.resize(4);
  if (random.coin()) {
    TN_TRY(mask, random_mask(random, batch, length));
    inputs.push_back(mask);
  }
  while (!inputs.back())
    inputs.pop_back();
  return edit.add({.type = "MultiHeadAttention",
                   .inputs = inputs,
                   .attrs = {{"num_heads", heads}, {"scale", 0.125}},
                   .domain = kDomain});
}

constexpr tn_op kMultiHead =
    op_row({.type = "MultiHeadAttention",
            .domain = kDomain,
            .attributes = "[" TENON_HEADS_ATTRIBUTES "]",
            .shape = shape<multi_head_shape,
                           "query: T[b s..], key: T[b t..]?, value: T[b u..]?, bias: T[n]?, "
                           "mask: i32?, attention_bias: T[_ _ _ _]?, past_key: T[b h p d]?, "
                           "past_value: T[b h p _]?, past_sequence_length: i32?, "
                           "cache_indirection: i32? ; h = num_heads, T = float">,
            .decompose = decompose<multi_head_decompose>,
            .sample = sample<multi_head_sample>});

}  // namespace

TENON_OPS(multi_head_attention, &kMultiHead)

}  // namespace tenon::ops
