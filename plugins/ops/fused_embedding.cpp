// SPDX-License-Identifier: Apache-2.0
// EmbedLayerNormalization, QEmbedLayerNormalization and RotaryEmbedding of ONNX Runtime's domain,
// which its transformer optimizer and quantizer write.
#include "dims.hpp"
#include "fused.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

using fused::dim_of;
using fused::is_read;
using fused::kDomain;
using fused::positions;

// ---- words, positions and segments

enum EmbedInput : uint64_t {
  kIds,
  kSegmentIds,
  kWords,
  kPositions,
  kSegments,
  kScale,
  kShift,
  kMask,
  kPositionIds
};

Status embed_shape(EditView edit, Node node) {
  if (bool(node.input(kSegmentIds)) != bool(node.input(kSegments)))
    return invalid("expected segment_ids and segment_embedding, or none of them");
  Type ids = node.input(kIds).type(), words = node.input(kWords).type();
  if (!is_float(words.dtype)) words.dtype = TN_F32;
  const bool is_known = ids.ranked && words.ranked;
  Type y = unranked(words.dtype), index = unranked(TN_I32);
  if (is_known) {
    y = type_of(words.dtype, {dims_of(ids)[0], dims_of(ids)[1], dims_of(words)[1]});
    index = type_of(TN_I32, {dims_of(ids)[0]});
  }
  TN_CHECK(set_output(edit, node, 0, y));
  TN_CHECK(set_output(edit, node, 1, index));
  return set_output(edit, node, 2, y);
}
struct Table {  // floats, or 8-bit integers with their scale
  Value rows, scale, zero;
};
Value dequantized(Builder& b, Value x, const Table& table) {
  return table.scale ? b.op("DequantizeLinear", {x, table.scale, table.zero}) : x;
}
Value looked_up(Builder& b, const Table& table, Value ids) {
  return dequantized(b, b.op("Gather", {table.rows, ids}), table);
}
Result<std::vector<Value>> embed(Builder& b, Node node, auto table_at) {
  Value ids = node.input(kIds);
  b.ranked(ids, node.type());
  TN_CHECK(b.status());
  Value places = table_at.has_position_ids ? node.input(kPositionIds) : Value();
  if (!places) places = positions(b, dim_of(b, ids, 1), ids.dtype());
  Value sum =
      b.add(looked_up(b, table_at(kWords), ids), looked_up(b, table_at(kPositions), places));
  if (node.input(kSegmentIds))
    sum = b.add(sum, looked_up(b, table_at(kSegments), node.input(kSegmentIds)));
  Table scale = table_at(kScale), shift = table_at(kShift);
  Value y = b.op("LayerNormalization",
                 {sum, dequantized(b, scale.rows, scale), dequantized(b, shift.rows, shift)},
                 {{"axis", -1}, {"epsilon", node.attr_float("epsilon", 1e-12)}});
  // How many words a row has.
  Value n_words = y;
  if (is_read(node, 1)) {
    Value mask = node.input(kMask), one = b.cast(b.number(1, TN_I64), TN_I32);
    Value words = mask ? b.cast(b.op("Equal", {mask, one}), TN_I32) : b.zeros_like(ids);
    n_words = b.cast(b.sum(words, {1}, false), TN_I32);
  }
  TN_CHECK(b.status());
  std::vector<Value> out{y, n_words, sum};
  out.resize(node.n_outputs(), y);
  return out;
}
struct FloatTables {
  Node node;
  static constexpr bool has_position_ids = true;
  Table operator()(uint64_t i) const { return {node.input(i), {}, {}}; }
};
struct QuantizedTables {  // five scales, then five zero points
  Node node;
  static constexpr bool has_position_ids = false;
  Table operator()(uint64_t i) const {
    return {node.input(i), node.input(i + 6), node.input(i + 11)};
  }
};
Result<std::vector<Value>> embed_decompose(EditView edit, Node node) {
  Builder b(edit);
  return embed(b, node, FloatTables{node});
}
Result<std::vector<Value>> quantized_embed_decompose(EditView edit, Node node) {
  Builder b(edit);
  return embed(b, node, QuantizedTables{node});
}
Result<Node> embed_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  const int64_t batch = random.integer(1, 2), length = random.integer(1, 4);
  auto table = [&](int64_t rows) { return random.input(TN_F32, {rows, 4}); };
  auto ids = [&](int64_t rows) -> Result<Value> {
    std::vector<int32_t> numbers;
    for (int64_t i = 0; i < batch * length; ++i)
      numbers.push_back(static_cast<int32_t>(random.integer(0, rows - 1)));
    return edit.constant<int32_t>(TN_I32, {batch, length}, numbers);
  };
  TN_TRY(word_ids, ids(7));
  TN_TRY(segment_ids, ids(2));
  TN_TRY(words, table(7));
  TN_TRY(positions, table(5));
  TN_TRY(segments, table(2));
  TN_TRY(scale, random.input(TN_F32, {4}));
  TN_TRY(shift, random.input(TN_F32, {4}));
  TN_TRY(mask, ids(2));
  // The default is for rows that are longer: the slopes of two equal numbers have no bound.
  return edit.add(
      {.type = "EmbedLayerNormalization",
       .inputs = {word_ids, segment_ids, words, positions, segments, scale, shift, mask},
       .attrs = {{"epsilon", 0.5}},
       .n_outputs = 3,
       .domain = kDomain});
}

Result<Node> quantized_embed_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  const int64_t length = random.integer(1, 4);
  std::vector<int32_t> numbers(static_cast<size_t>(2 * length));
  for (int32_t& one : numbers)
    one = static_cast<int32_t>(random.integer(0, 1));
  TN_TRY(ids, edit.constant<int32_t>(TN_I32, {2, length}, numbers));
  std::vector<Value> inputs{ids, ids};
  for (int i = 0; i < 5; ++i) {
    TN_TRY(table,
           random.input(TN_U8, i < 3 ? std::vector<int64_t>{5, 4} : std::vector<int64_t>{4}));
    inputs.push_back(table);
  }
  inputs.push_back(ids);  // the mask
  for (int i = 0; i < 5; ++i) {
    TN_TRY(scale, edit.constant<float>(TN_F32, {}, std::vector<float>{0.02F}));
    inputs.push_back(scale);
  }
  for (int i = 0; i < 5; ++i) {
    TN_TRY(zero, edit.constant<uint8_t>(TN_U8, {}, std::vector<uint8_t>{100}));
    inputs.push_back(zero);
  }
  return edit.add({.type = "QEmbedLayerNormalization",
                   .inputs = inputs,
                   .attrs = {{"epsilon", 0.5}},
                   .n_outputs = 2,
                   .domain = kDomain});
}

// ---- rotations

Status rotary_shape(EditView edit, Node node) {
  TN_CHECK(fused::expect_zero(node, {"is_packed_batching"}));
  if (double scale = node.attr_float("scale", 1); scale != 1)
    return unsupported(cat("attribute scale: expected 1, got ", scale));
  const Type x = node.input(0).type(), ids = node.input(1).type();
  if (x.ranked && x.rank() != 3 && x.rank() != 4)
    return invalid(cat("input: expected 3 or 4 axes, got ", type_text(x)));
  if (ids.ranked && ids.rank() != 1 && ids.rank() != 2)
    return invalid(cat("position_ids: expected 1 or 2 axes, got ", type_text(ids)));
  return set_output(edit, node, 0, node.input(0).type());
}
Result<std::vector<Value>> rotary_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0), ids = node.input(1);
  Type type = b.ranked(x, "RotaryEmbedding"), at = b.ranked(ids, "RotaryEmbedding"),
       angles = b.ranked(node.input(2), "RotaryEmbedding");
  TN_CHECK(b.status());
  int64_t heads = node.attr_int("num_heads");
  if (type.rank() == 3 && heads == 0) {
    if (type.dims[2] < 0 || angles.dims[1] < 1)
      return unsupported("decomposed only where the size of a head is known");
    heads = type.dims[2] / (2 * angles.dims[1]);
  }
  if (at.rank() == 1) {  // where the first position stands
    const int64_t axis = type.rank() == 3 ? 1 : 2;
    Value size = dim_of(b, x, axis);
    ids = b.op("Expand", {b.add(b.cast(ids, TN_I64), positions(b, size, TN_I64)),
                          b.op("Concat", {dim_of(b, x, 0), size}, {{"axis", 0}})});
  }
  std::vector<Attr> attrs{{"interleaved", node.attr_int("interleaved")},
                          {"rotary_embedding_dim", node.attr_int("rotary_embedding_dim")}};
  if (heads > 0) attrs.emplace_back("num_heads", heads);
  Value y = b.op("RotaryEmbedding", {x, node.input(2), node.input(3), b.cast(ids, TN_I64)}, attrs);
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}
Result<Node> rotary_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  const int64_t batch = random.integer(1, 2), heads = random.integer(1, 2),
                length = random.integer(1, 3), half = random.integer(1, 3);
  TN_TRY(x, random.input(TN_F32, random.coin() ? std::vector{batch, length, heads * half * 2}
                                               : std::vector{batch, heads, length, half * 2}));
  TN_TRY(cosines, random.input(TN_F32, {6, half}));
  TN_TRY(sines, random.input(TN_F32, {6, half}));
  TN_TRY(offset, edit.constant<int64_t>(TN_I64, {1}, {random.integer(0, 3)}));
  return edit.add({.type = "RotaryEmbedding",
                   .inputs = {x, offset, cosines, sines},
                   .attrs = {{"num_heads", heads}, {"interleaved", random.integer(0, 1)}},
                   .domain = kDomain});
}

constexpr tn_op kEmbed = op_row(
    {.type = "EmbedLayerNormalization",
     .domain = kDomain,
     .attributes = R"([{"name": "epsilon", "type": "float", "default": 1e-12},
                       {"name": "mask_index_type", "type": "int", "default": 0}])",
     .shape = shape<embed_shape,
                    "ids: i32[b s], segment_ids: i32[b s]?, words: T[_ c], positions: T[_ c], "
                    "segments: T[_ c]?, scale: T[c], shift: T[c], mask: i32[b s]?, "
                    "position_ids: i32[_ s]? ; T = float">,
     .decompose = decompose<embed_decompose>,
     .sample = sample<embed_sample>});
constexpr tn_op kQuantizedEmbed = op_row(
    {.type = "QEmbedLayerNormalization",
     .domain = kDomain,
     .attributes = R"([{"name": "epsilon", "type": "float", "default": 1e-12}])",
     .shape = shape<embed_shape,
                    "ids: i32[b s], segment_ids: i32[b s]?, words: T[_ c], positions: T[_ c], "
                    "segments: T[_ c]?, scale: T[c], shift: T[c], mask: i32[b s]?, "
                    "words_scale: f32[one], positions_scale: f32[one], segments_scale: f32[one]?, "
                    "scale_scale: f32[one], shift_scale: f32[one], words_zero: T[one], "
                    "positions_zero: T[one], segments_zero: T[one]?, scale_zero: T[one], "
                    "shift_zero: T[one] ; T = i8|u8">,
     .decompose = decompose<quantized_embed_decompose>,
     .sample = sample<quantized_embed_sample>});
constexpr tn_op kRotary =
    op_row({.type = "RotaryEmbedding",
            .domain = kDomain,
            .attributes = R"([{"name": "num_heads", "type": "int", "default": 0},
                       {"name": "rotary_embedding_dim", "type": "int", "default": 0},
                       {"name": "interleaved", "type": "int", "default": 0},
                       {"name": "is_packed_batching", "type": "int", "default": 0},
                       {"name": "scale", "type": "float", "default": 1.0}])",
            .shape = shape<rotary_shape,
                           "x: T[b s..], position_ids: i64, cos_cache: T[m c], sin_cache: T[m c] ; "
                           "T = float">,
            .decompose = decompose<rotary_decompose>,
            .sample = sample<rotary_sample>});

}  // namespace

TENON_OPS(fused_embedding, &kEmbed, &kQuantizedEmbed, &kRotary)

}  // namespace tenon::ops
