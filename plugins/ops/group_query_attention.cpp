// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention of ONNX Runtime's domain, which exporters of language models write: rotary
// positions, a cache of keys and values that may be longer than what it holds, and ONNX's
// Attention.
#include <algorithm>
#include <limits>
#include <numeric>

#include "attention.hpp"
#include "cells.hpp"
#include "dims.hpp"
#include "fused.hpp"

namespace tenon::ops {
namespace {

using fused::expect_absent;
using fused::is_read;
using fused::kDomain;

enum Input : uint64_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCosines,
  kSines,
  kPositions,
  kBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm
};

struct Heads {
  Dim query, key, size;  // how many, and how wide one is
};
Heads heads_of(Node node) {
  const int64_t query = node.attr_int("num_heads"), key = node.attr_int("kv_num_heads");
  Type type = node.input(kQuery).type();
  Dim width = type.ranked ? dims_of(type)[2] : Dim();
  const int64_t n = node.input(kKey) ? query : query + 2 * key;  // as many lie in one row
  return {query, key, quotient({width}, {Dim(n)})};
}
// How many keys there are with this call's: known where it is computed from shapes, or by the
// columns of a bias. Where it is an input, the cache is taken to have room for them.
Dim total_of(Node node) {
  if (!node.input(kPastKey)) {
    Type key = node.input(node.input(kKey) ? kKey : kQuery).type();
    return key.ranked ? dims_of(key)[1] : Dim();
  }
  std::optional<Dims> total = contents(node.input(kTotal));
  const Dim stated = total && total->size() == 1 ? (*total)[0] : Dim();
  Type bias = node.input(kBias).type();
  return !stated.known() && node.input(kBias) && bias.ranked ? dims_of(bias)[3] : stated;
}

// One for each sequence: [b] or, as ONNX Runtime takes it too, [b, 1].
Status expect_lengths(Node node) {
  const Type type = node.input(kLengths).type();
  const bool is_column = type.rank() == 2 && (type.dims[1] == 1 || type.dims[1] < 0);
  if (!type.ranked || type.rank() == 1 || is_column) return {};
  return invalid(cat("seqlens_k: expected [batch] or [batch, 1], got ", type_text(type)));
}

Status group_shape(EditView edit, Node node) {
  TN_CHECK(expect_lengths(node));
  const int64_t heads = node.attr_int("num_heads"), shared = node.attr_int("kv_num_heads");
  if (shared < 1 || heads < 1 || heads % shared != 0)
    return invalid(
        cat("num_heads: expected a multiple of kv_num_heads, got ", heads, " and ", shared));
  TN_CHECK(fused::expect_zero(node, {"sliding_window_cache", "qk_output"}));
  TN_CHECK(expect_absent(node, kKeyScale, "k_scale"));
  TN_CHECK(expect_absent(node, kValueScale, "v_scale"));
  if (bool(node.input(kKey)) != bool(node.input(kValue)))
    return invalid("expected key and value, or none of them");
  if (node.attr_int("do_rotary") != 0 && !(node.input(kCosines) && node.input(kSines)))
    return invalid("do_rotary: expected cos_cache and sin_cache");
  Type q = node.input(kQuery).type(), past = node.input(kPastKey).type();
  if (!q.ranked) {
    for (uint64_t i = 0; i < 3; ++i)
      TN_CHECK(set_output(edit, node, i, unranked(q.dtype)));
    return {};
  }
  Dims dims = dims_of(q);
  const int64_t in_a_row = node.input(kKey) ? heads : heads + 2 * shared;
  if (dims[2].known() && *dims[2].value % in_a_row != 0)
    return invalid(
        cat("query: expected a width that ", in_a_row, " divides, got ", *dims[2].value));
  Heads each = heads_of(node);
  Dim length = total_of(node);
  if (past.ranked && past.rank() == 4) {
    Dim room = dims_of(past)[2];
    length = length.known() && room.known() ? Dim(std::max(*length.value, *room.value)) : Dim();
  }
  TN_CHECK(set_output(edit, node, 0, q.dtype, {dims[0], dims[1], each.query * each.size}));
  for (uint64_t i : {1, 2})
    TN_CHECK(set_output(edit, node, i, q.dtype, {dims[0], each.key, length, each.size}));
  return {};
}

class Decomposer {
 public:
  Decomposer(Builder& b, Node node) : b_(b), node_(node) {}

  Result<std::vector<Value>> run() {
    TN_CHECK(measure());
    Value q = node_.input(kQuery), k = node_.input(kKey), v = node_.input(kValue);
    if (!k) {
      Node parts =
          b_.node({.type = "Split",
                   .inputs = {q, b_.ints({heads_ * size_, shared_ * size_, shared_ * size_})},
                   .attrs = {{"axis", -1}},
                   .n_outputs = 3});
      TN_CHECK(b_.status());
      q = parts.output(0), k = parts.output(1), v = parts.output(2);
    }
    if (!is_aligned_) place();
    q = by_heads(q, heads_, kQueryNorm);
    k = by_heads(k, shared_, kKeyNorm);
    v = by_heads(v, shared_, kValue);
    Value key = stored(k, kPastKey), value = stored(v, kPastValue);
    Value y = attend(q, filled(key), filled(value));
    TN_CHECK(b_.status());
    std::vector<Value> out{y, key, value};
    out.resize(node_.n_outputs(), y);
    return out;
  }

 private:
  Status measure() {
    Type q = b_.ranked(node_.input(kQuery), node_.type());
    TN_CHECK(b_.status());
    Heads each = heads_of(node_);
    Dim total = total_of(node_), length = dims_of(q)[1], room(0);
    if (node_.input(kPastKey)) {
      room = dims_of(b_.ranked(node_.input(kPastKey), node_.type()))[2];
      TN_CHECK(b_.status());
    }
    for (const Dim& dim : {each.size, length, room})
      if (!dim.known()) return unsupported("decomposed only where the sizes are known");
    heads_ = *each.query.value, shared_ = *each.key.value, size_ = *each.size.value;
    length_ = *length.value, room_ = *room.value;
    total_ = total.known() ? *total.value : room_ < length_ ? room_ + length_ : room_;
    if (total_ < length_ || total_ > room_ + length_)
      return invalid(cat("total_sequence_length: expected ", length_, " to ", length_ + room_,
                         ", got ", total_));
    // ONNX Runtime counts the past by seqlens_k, save in a call that begins a text.
    const bool is_first = room_ == 0 || (total.known() && total_ == length_);
    is_aligned_ = is_first || has_full_lengths();
    past_ = total_ - length_;
    return {};
  }
  // Whether each sequence is known to have all of the keys.
  bool has_full_lengths() const {
    const Value lengths = node_.input(kLengths);
    const std::optional<Dims> last = contents(lengths);
    if (!last && lengths.is_constant())  // [b, 1]
      return std::ranges::all_of(read_ints(lengths.constant().dl()),
                                 [&](int64_t each) { return each == total_ - 1; });
    return last && std::ranges::all_of(*last, [&](const Dim& dim) { return dim.is(total_ - 1); });
  }
  // Where the new rows stand among the keys, which is known at run time: [b, s].
  void place() {
    std::vector<int64_t> steps(static_cast<size_t>(length_));
    std::iota(steps.begin(), steps.end(), 1 - length_);
    Value last = b_.reshape(b_.cast(node_.input(kLengths), TN_I64), {-1, 1});
    at_ = length_ == 1 ? last : b_.add(last, b_.reshape(b_.ints(steps), {1, length_}));
    if (length_ == 1 || total_of(node_).known()) return;
    // A call that begins a text, which only the total says, has its rows in front.
    std::iota(steps.begin(), steps.end(), 0);
    Value total = b_.reshape(b_.cast(node_.input(kTotal), TN_I64), {1, 1});
    Value is_first = b_.op("Equal", {total, b_.ints({length_})});
    at_ = b_.op("Where", {is_first, b_.reshape(b_.ints(steps), {1, length_}), at_});
  }
  // [b, s, heads*d] as [b, heads, s, d], normalized and with its positions where the node says so.
  Value by_heads(Value x, int64_t heads, uint64_t weight) {
    Value y = b_.op("Reshape", {x, b_.ints({0, 0, heads, size_})});
    const bool is_query_or_key = weight != kValue;
    if (is_query_or_key && node_.input(weight))
      y = b_.op("RMSNormalization", {y, node_.input(weight)},
                {{"axis", -1}, {"epsilon", node_.attr_float("qk_norm_epsilon", 1e-6)}});
    y = b_.transpose(y, {0, 2, 1, 3});
    if (!is_query_or_key || node_.attr_int("do_rotary") == 0) return y;
    Value at = node_.input(kPositions) ? node_.input(kPositions) : at_;
    if (!at) {
      std::vector<int64_t> row(static_cast<size_t>(length_));
      std::iota(row.begin(), row.end(), past_);
      Value ids = b_.reshape(b_.ints(row), {1, length_});
      Value batch = fused::dim_of(b_, x, 0);
      at = b_.op("Expand", {ids, b_.op("Concat", {batch, b_.ints({length_})}, {{"axis", 0}})});
    }
    std::vector<Attr> attrs{{"interleaved", node_.attr_int("rotary_interleaved")}};
    // A cache with fewer columns turns the first numbers of a head alone.
    Type angles = node_.input(kCosines).type();
    if (angles.ranked && angles.dims[1] > 0 && 2 * angles.dims[1] < size_)
      attrs.emplace_back("rotary_embedding_dim", 2 * angles.dims[1]);
    return b_.op("RotaryEmbedding", {y, node_.input(kCosines), node_.input(kSines), at}, attrs);
  }
  Value rows(Value x, int64_t from, int64_t to, int64_t axis = 2) {
    return b_.op("Slice", {x, b_.ints({from}), b_.ints({to}), b_.ints({axis})});
  }
  // The cache with the new rows in their places; it keeps its room where that is longer.
  Value stored(Value x, uint64_t past) {
    if (room_ == 0) return x;
    Value cache = node_.input(past);
    if (!is_aligned_) {
      const int64_t missing = std::max<int64_t>(total_ - room_, 0);
      if (missing > 0) cache = b_.op("Pad", {cache, b_.ints({0, 0, 0, 0, 0, 0, missing, 0})});
      Value first = b_.reshape(rows(at_, 0, 1, 1), {-1});
      return b_.op("TensorScatter", {cache, x, first}, {{"axis", 2}});
    }
    std::vector<Value> parts;
    if (past_ > 0) parts.push_back(past_ < room_ ? rows(cache, 0, past_) : cache);
    parts.push_back(x);
    if (total_ < room_) parts.push_back(rows(cache, total_, room_));
    return parts.size() == 1 ? x : b_.op("Concat", parts, {{"axis", 2}});
  }
  Value filled(Value cache) { return total_ < room_ ? rows(cache, 0, total_) : cache; }

  Value attend(Value q, Value k, Value v) {
    std::vector<Value> inputs{q, k, v};
    if (node_.input(kBias)) inputs.push_back(node_.input(kBias));
    // Attention counts queries from its first key, without a past of its own: the past is bias.
    Value mask = hidden();
    if (mask) {
      inputs.resize(4);
      inputs[3] = inputs[3] ? b_.add(inputs[3], mask) : mask;
    }
    if (has_sink()) add_sink(inputs);
    std::vector<Attr> attrs{{"softcap", node_.attr_float("softcap")}};
    if (double scale = node_.attr_float("scale"); scale != 0) attrs.emplace_back("scale", scale);
    Value y = b_.op("Attention", inputs, attrs);
    return b_.op("Reshape", {b_.transpose(y, {0, 2, 1, 3}), b_.ints({0, 0, -1})});
  }
  bool has_sink() const { return node_.input(kSink) || node_.attr_int("smooth_softmax") > 0; }
  // A further term of the softmax, of a score of its own for each head (0 where none is given) and
  // without a value: a key and a value of zeros, of which the mask says the score.
  void add_sink(std::vector<Value>& inputs) {
    auto pad = [&](Value x, std::vector<int64_t> pads) { return b_.op("Pad", {x, b_.ints(pads)}); };
    for (uint64_t i : {1, 2})
      inputs[i] = pad(inputs[i], {0, 0, 0, 0, 0, 0, 1, 0});
    if (inputs.size() > 3) {
      Value mask = inputs[3];
      if (!node_.input(kBias) && is_aligned_) mask = b_.reshape(mask, {1, 1, length_, total_});
      inputs[3] = pad(mask, {0, 0, 0, 0, 0, 0, 0, 1});
    }
    if (!node_.input(kSink)) return;
    Value score = b_.reshape(node_.input(kSink), {1, heads_, 1, 1});
    score = pad(score, {0, 0, 0, total_, 0, 0, 0, 0});
    if (inputs.size() > 3)
      inputs[3] = b_.add(inputs[3], score);
    else
      inputs.push_back(score);
  }

  // What hides keys behind a query and keys out of its window: added to the scores [s, t], or
  // [b, 1, s, t] where the rows' places are known at run time.
  Value hidden() {
    const bool is_causal = node_.attr_int("causal", 1) != 0;
    const int64_t window = node_.attr_int("local_window_size", -1);
    if (!is_aligned_) return hidden_by_places(is_causal, window);
    if (!is_causal || (length_ == 1 && window < 0)) return {};
    std::vector<float> added;
    for (int64_t i = 0; i < length_ * total_; ++i) {
      const int64_t behind = past_ + i / total_ - i % total_;
      const bool is_seen = behind >= 0 && (window < 0 || behind < window);
      added.push_back(is_seen ? 0 : -std::numeric_limits<float>::infinity());
    }
    Value mask = b_.take(b_.edit().constant<float>(TN_F32, {length_, total_}, added));
    return b_.cast(mask, node_.input(kQuery).dtype());
  }

  Value hidden_by_places(bool is_causal, int64_t window) {
    std::vector<int64_t> numbers(static_cast<size_t>(total_));
    std::iota(numbers.begin(), numbers.end(), 0);
    Value key = b_.reshape(b_.ints(numbers), {1, 1, 1, -1});
    Value own = b_.reshape(at_, {-1, 1, length_, 1});
    Value last = is_causal ? own : rows(own, length_ - 1, length_);
    Value is_hidden = b_.op("Greater", {key, last});
    if (window >= 0) {
      Value first = b_.sub(own, b_.number(static_cast<double>(window), TN_I64));
      is_hidden = b_.op("Or", {is_hidden, b_.op("LessOrEqual", {key, first})});
    }
    const uint32_t dtype = node_.input(kQuery).dtype();
    return b_.op("Where", {is_hidden, b_.number(attention::kMinusInf, dtype), b_.number(0, dtype)});
  }

  Builder& b_;
  Node node_;
  int64_t heads_ = 0, shared_ = 0, size_ = 0;  // of queries, of keys, width of one
  int64_t length_ = 0, past_ = 0, total_ = 0;  // rows of this call, in the cache before, and both
  int64_t room_ = 0;                           // rows that the cache has room for
  bool is_aligned_ = false;  // the new rows are known to be the last ones of all keys
  Value at_;                 // where they stand, if not: [b, s]
};
Result<std::vector<Value>> group_decompose(EditView edit, Node node) {
  Builder b(edit);
  return Decomposer(b, node).run();
}

Result<Node> group_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  const int64_t shared = random.integer(1, 2), heads = shared * random.integer(1, 2), size = 4;
  const int64_t length = random.integer(1, 3), past = random.integer(0, 3);
  const bool has_room = random.coin();
  auto rows = [&](int64_t n) { return random.input(TN_F32, {1, length, n * size}); };
  TN_TRY(q, rows(heads));
  TN_TRY(k, rows(shared));
  TN_TRY(v, rows(shared));
  const std::vector<int64_t> cache{1, shared, past + (has_room ? length + 1 : 0), size};
  TN_TRY(past_key, random.input(TN_F32, cache));
  TN_TRY(past_value, random.input(TN_F32, cache));
  const auto total = static_cast<int32_t>(past + length);
  TN_TRY(lengths, edit.constant<int32_t>(TN_I32, {1}, std::vector<int32_t>{total - 1}));
  TN_TRY(all, edit.constant<int32_t>(TN_I32, {}, std::vector<int32_t>{total}));
  TN_TRY(cosines, random.input(TN_F32, {8, size / 2}));
  TN_TRY(sines, random.input(TN_F32, {8, size / 2}));
  std::vector<Value> inputs{q, k, v, past_key, past_value, lengths, all, cosines, sines};
  if (random.coin()) {
    TN_TRY(sink, random.input(TN_F32, {heads}));
    inputs.insert(inputs.end(), {Value{}, Value{}, sink});
  }
  return edit.add({.type = "GroupQueryAttention",
                   .inputs = inputs,
                   .attrs = {{"num_heads", heads},
                             {"kv_num_heads", shared},
                             {"scale", 0.25},
                             {"do_rotary", random.integer(0, 1)}},
                   .n_outputs = 3,
                   .domain = kDomain});
}

constexpr tn_op kGroup = op_row(
    {.type = "GroupQueryAttention",
     .domain = kDomain,
     .attributes = R"([{"name": "num_heads", "type": "int"},
                       {"name": "kv_num_heads", "type": "int"},
                       {"name": "scale", "type": "float"},
                       {"name": "softcap", "type": "float", "default": 0.0},
                       {"name": "causal", "type": "int", "default": 1},
                       {"name": "local_window_size", "type": "int", "default": -1},
                       {"name": "do_rotary", "type": "int", "default": 0},
                       {"name": "rotary_interleaved", "type": "int", "default": 0},
                       {"name": "smooth_softmax", "type": "int", "default": 0},
                       {"name": "sliding_window_cache", "type": "int", "default": 0},
                       {"name": "qk_output", "type": "int", "default": 0},
                       {"name": "qk_norm_epsilon", "type": "float", "default": 1e-6},
                       {"name": "kv_cache_bit_width", "type": "int", "default": 0},
                       {"name": "k_quant_type", "type": "string", "default": "NONE"},
                       {"name": "v_quant_type", "type": "string", "default": "NONE"}])",
     .shape = shape<
         group_shape,
         "query: T[b s w], key: T[b s u]?, value: T[b s u]?, past_key: T[b h p d]?, "
         "past_value: T[b h p d]?, seqlens_k: i32[b _..], total_sequence_length: i32[one], "
         "cos_cache: T[m c]?, sin_cache: T[m c]?, position_ids: i64[b s]?, "
         "attention_bias: T[_ _ s t]?, head_sink: T[n]?, k_scale: f32?, v_scale: f32?, "
         "q_norm_weight: T[d]?, k_norm_weight: T[d]? ; h = kv_num_heads, n = num_heads, T = float">,
     .decompose = decompose<group_decompose>,
     .sample = sample<group_sample>});

}  // namespace

TENON_OPS(group_query_attention, &kGroup)

}  // namespace tenon::ops
