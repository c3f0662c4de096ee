// SPDX-License-Identifier: Apache-2.0
// Attention and QAttention of ONNX Runtime's domain, which its transformer optimizer writes:
// attention behind one product that makes queries, keys and values.
#include <algorithm>

#include "fused.hpp"

namespace tenon::ops {
namespace {

using namespace fused;  // NOLINT(google-build-using-namespace): the same operators

struct Projection {  // where the inputs of Attention and QAttention stand
  uint64_t mask, past;
};
constexpr Projection kFloatInputs{3, 4}, kQuantizedInputs{5, 8};

// Widths of queries, keys and values, as far as known.
Dims widths(Node node) {
  Dims given;
  for (int64_t width : node.attr_ints("qkv_hidden_sizes"))
    given.emplace_back(width);
  if (given.size() == 3) return given;
  Type weights = node.input(1).type();
  return Dims(3, weights.ranked ? quotient({dims_of(weights).back()}, {Dim(3)}) : Dim());
}
// One tensor holds both, so that their widths are one. each: as `widths` has them.
Status expect_one_cache(const Dims& each, std::string_view what) {
  if (!each[1].known() || !each[2].known() || each[1].is(*each[2].value)) return {};
  return invalid(cat("qkv_hidden_sizes: expected keys as wide as values, which ", what,
                     " holds together, got ", *each[1].value, " and ", *each[2].value));
}
Status projection_shape(EditView edit, Node node, uint32_t dtype, Projection at) {
  TN_CHECK(expect_zero(node, {"do_rotary", "past_present_share_buffer"}));
  TN_CHECK(expect_heads(node));
  Type x = node.input(0).type(), past = node.input(at.past).type();
  std::vector<int64_t> given = node.attr_ints("qkv_hidden_sizes");
  if (!given.empty() && (given.size() != 3 || *std::min_element(given.begin(), given.end()) < 1))
    return invalid("qkv_hidden_sizes: expected three sizes from 1");
  if (!x.ranked || (node.input(at.past) && !past.ranked)) {
    TN_CHECK(set_output(edit, node, 0, unranked(dtype)));
    return set_output(edit, node, 1, unranked(dtype));
  }
  Dims dims = dims_of(x), each = widths(node);
  const Dim heads(node.attr_int("num_heads"));
  if (Dim all = node.input(1).type().ranked ? dims_of(node.input(1).type()).back() : Dim();
      all.known() && !all.is(known_ints(each) ? *(each[0] + each[1] + each[2]).value : -1))
    return invalid(cat("weights: expected as many columns as queries, keys and values have, got ",
                       *all.value));
  for (const Dim& width : each)
    if (width.known() && *width.value % *heads.value != 0)
      return invalid(
          cat("num_heads: expected a divisor of ", *width.value, ", got ", *heads.value));
  if (node.input(at.past)) TN_CHECK(expect_one_cache(each, "past"));
  Dim length = node.input(at.past) ? dims[1] + dims_of(past)[3] : dims[1];
  TN_CHECK(
      set_output(edit, node, 1, dtype, {2, dims[0], heads, length, quotient({each[1]}, {heads})}));
  return set_output(edit, node, 0, dtype, {dims[0], dims[1], each[2]});
}

// projected: [b, s, widths of queries, keys and values together]
Result<std::vector<Value>> attend_projected(
    Builder& b, Node node, Value projected, Projection at, Value bias) {
  std::optional<std::vector<int64_t>> sizes = known_ints(widths(node));
  if (!sizes) return unsupported("decomposed only where the width of the weights is known");
  if (is_read(node, 1)) TN_CHECK(expect_one_cache(widths(node), "present"));
  Node parts = b.node({.type = "Split",
                       .inputs = {projected, b.ints(*sizes)},
                       .attrs = {{"axis", -1}},
                       .n_outputs = 3});
  TN_CHECK(b.status());
  Operands x{.q = parts.output(0),
             .k = parts.output(1),
             .v = parts.output(2),
             .mask = node.input(at.mask),
             .bias = bias};
  Value first = b.ints({0});
  if (Value past = node.input(at.past)) {
    Node both = b.node({.type = "Split",
                        .inputs = {past, b.ints({1, 1})},
                        .attrs = {{"axis", 0}},
                        .n_outputs = 2});
    TN_CHECK(b.status());
    x.past_key = b.op("Squeeze", {both.output(0), first});
    x.past_value = b.op("Squeeze", {both.output(1), first});
  }
  Attended all = attend(b, node, x);
  std::vector<Value> out{all.y};
  if (is_read(node, 1))
    out.push_back(b.op("Concat",
                       {b.op("Unsqueeze", {all.key, first}), b.op("Unsqueeze", {all.value, first})},
                       {{"axis", 0}}));
  TN_CHECK(b.status());
  // A result that nobody reads may be any value.
  out.resize(node.n_outputs(), all.y);
  return out;
}

Status attention_shape(EditView edit, Node node) {
  TN_CHECK(expect_absent(node, 6, "past_sequence_length"));
  return projection_shape(edit, node, node.input(0).dtype(), kFloatInputs);
}
Result<std::vector<Value>> attention_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value projected = b.op("MatMul", {node.input(0), node.input(1)});
  if (node.input(2)) projected = b.add(projected, node.input(2));
  return attend_projected(b, node, projected, kFloatInputs, node.input(5));
}

Status quantized_shape(EditView edit, Node node) {
  return projection_shape(edit, node, TN_F32, kQuantizedInputs);
}
Result<std::vector<Value>> quantized_decompose(EditView edit, Node node) {
  Builder b(edit);
  std::vector<Value> inputs{node.input(0), node.input(1), node.input(3), node.input(4),
                            node.input(6), node.input(7), node.input(2)};
  Node projected = b.node({.type = "MatMulIntegerToFloat", .inputs = inputs, .domain = kDomain});
  TN_CHECK(b.status());
  return attend_projected(b, node, projected.output(), kQuantizedInputs, {});
}

Result<Node> attention_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  const int64_t heads = random.integer(1, 2), size = 2 * random.integer(1, 2);
  const int64_t batch = random.integer(1, 2), length = random.integer(1, 4), width = heads * size;
  TN_TRY(x, random.input(TN_F32, {batch, length, 3}));
  TN_TRY(weights, random.input(TN_F32, {3, 3 * width}));
  TN_TRY(bias, random.input(TN_F32, {3 * width}));
  std::vector<Value> inputs{x, weights, bias};
  const bool has_past = random.coin();
  if (random.coin()) {
    TN_TRY(mask, random_mask(random, batch, length + (has_past ? 2 : 0)));
    inputs.push_back(mask);
  }
  if (has_past) {
    TN_TRY(past, random.input(TN_F32, {2, batch, heads, 2, size}));
    inputs.resize(4);
    inputs.push_back(past);
  }
  return edit.add({.type = "Attention",
                   .inputs = inputs,
                   .attrs = {{"num_heads", heads},
                             {"scale", 0.125},  // no saturated Softmax, whose slopes cancel
                             {"unidirectional", random.integer(0, 1)}},
                   .n_outputs = 2,
                   .domain = kDomain});
}
Result<Node> quantized_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  const int64_t heads = random.integer(1, 2), width = heads * 2, batch = random.integer(1, 2);
  TN_TRY(x, random.input(TN_U8, {batch, 3, 4}));
  TN_TRY(weights, random.input(TN_I8, {4, 3 * width}));
  TN_TRY(bias, random.input(TN_F32, {3 * width}));
  TN_TRY(scale, edit.constant<float>(TN_F32, {}, std::vector<float>{0.01F}));
  TN_TRY(zero, edit.constant<uint8_t>(TN_U8, {}, std::vector<uint8_t>{100}));
  return edit.add({.type = "QAttention",
                   .inputs = {x, weights, bias, scale, scale, {}, zero},
                   .attrs = {{"num_heads", heads}},
                   .domain = kDomain});
}
constexpr tn_op kAttention =
    op_row({.type = "Attention",
            .domain = kDomain,
            .attributes = "[" TENON_HEADS_ATTRIBUTES R"(,
              {"name": "do_rotary", "type": "int", "default": 0},
              {"name": "past_present_share_buffer", "type": "int", "default": 0},
              {"name": "qkv_hidden_sizes", "type": "ints"},
              {"name": "rotary_embedding_dim", "type": "int", "default": 0}])",
            .shape = shape<attention_shape,
                           "x: T[b s i], weights: T[i n], bias: T[n]?, mask: i32?, "
                           "past: T[2 b h p d]?, attention_bias: T[_ _ s _]?, "
                           "past_sequence_length: i32? ; h = num_heads, T = float">,
            .decompose = decompose<attention_decompose>,
            .sample = sample<attention_sample>});
constexpr tn_op kQuantized =
    op_row({.type = "QAttention",
            .domain = kDomain,
            .attributes = "[" TENON_HEADS_ATTRIBUTES R"(,
              {"name": "do_rotary", "type": "int", "default": 0},
              {"name": "past_present_share_buffer", "type": "int", "default": 0}])",
            .shape = shape<quantized_shape,
                           "x: T[b s i], weights: U[i n], bias: f32[n], x_scale: f32[one], "
                           "w_scale: f32, mask: i32?, x_zero: T[one]?, w_zero: U?, "
                           "past: f32[2 b h p d]? ; h = num_heads, T = i8|u8, U = i8|u8">,
            .decompose = decompose<quantized_decompose>,
            .sample = sample<quantized_sample>});
}  // namespace

TENON_OPS(fused_attention, &kAttention, &kQuantized)

}  // namespace tenon::ops
