// SPDX-License-Identifier: Apache-2.0
// Attention from smaller operators, so that backends without it, gradients and fusion have it too.
#include <algorithm>
#include <array>
#include <cmath>

#include "attention.hpp"

namespace tenon::ops::attention {
namespace {

// The parts of the decomposition, where all sizes but the batch are known.
struct Parts {
  EditView edit;
  Node node;
  std::array<int64_t, 4> q, k, v;  // [b or -1, heads, s, d], the keys with the past

  Result<Value> number(double x) const {
    Builder b(edit);
    Value made = b.number(x, node.input(kQ).dtype());
    TN_CHECK(b.status());
    return made;
  }
  Result<Value> reshape(Value x, const std::vector<int64_t>& shape) const {
    TN_TRY(dims, edit.ints(shape));
    return edit.op("Reshape", {x, dims}, {{"allowzero", 1}});
  }
  // Input i as [b, heads, s, d], after its past.
  Result<Value> heads(Input i, Input past, const std::array<int64_t, 4>& dims) const {
    Value x = node.input(i);
    if (x.type().rank() == 3) {
      const std::vector<int64_t> swap{0, 2, 1, 3};
      TN_TRY(split, reshape(x, {dims[0], x.type().dims[1], dims[1], dims[3]}));
      TN_TRY(moved, edit.op("Transpose", {split}, {{"perm", swap}}));
      x = moved;
    }
    if (past == i || !node.input(past)) return x;
    return edit.op("Concat", {node.input(past), x}, {{"axis", 2}});
  }
  // Whether the query heads that share a key head are rows of one product, [b, key heads, heads of
  // one, d]: the keys of a step of a decoder are many, and are not copied for it.
  bool is_joint() const { return q[2] == 1 && q[1] != k[1]; }
  Result<Value> joined(Value x, int64_t width) const {
    return is_joint() ? reshape(x, {q[0], k[1], q[1] / k[1], width}) : x;
  }
  Result<Value> parted(Value x, int64_t width) const {
    return is_joint() ? reshape(x, {q[0], q[1], q[2], width}) : x;
  }
  // Each key head for all query heads that share it.
  Result<Value> repeated(Value x, const std::array<int64_t, 4>& dims) const {
    int64_t times = q[1] / dims[1];
    if (times == 1 || is_joint()) return x;
    TN_TRY(axis, edit.ints({2}));
    TN_TRY(wide, edit.op("Unsqueeze", {x, axis}));
    int64_t batch = dims[0] < 0 ? 1 : dims[0];  // 1 leaves an axis as it is
    TN_TRY(shape, edit.ints({batch, dims[1], times, dims[2], dims[3]}));
    TN_TRY(all, edit.op("Expand", {wide, shape}));
    return reshape(all, {dims[0], q[1], dims[2], dims[3]});
  }
  // What is added to the scores; falsy: nothing.
  Result<Value> bias() const {
    TN_TRY(never, number(kMinusInf));
    TN_TRY(zero, number(0));
    Value out = node.input(kMask);
    if (out && out.dtype() == TN_BOOL) {
      TN_TRY(chosen, edit.op("Where", {out, zero, never}));
      out = chosen;
    }
    const bool is_causal = node.attr_int("is_causal") != 0;
    const int64_t left = node.attr_int("left_window_size", -1);
    const int64_t right = is_causal ? 0 : node.attr_int("right_window_size", -1);
    if (left < 0 && right < 0) return out;
    int64_t offset = k[2] - node.input(kK).type().dims[node.input(kK).type().rank() - 2];
    std::vector<uint8_t> seen;
    for (int64_t i = 0; i < q[2] * k[2]; ++i) {
      const int64_t ahead = i % k[2] - i / k[2] - offset;  // the key's position less the query's
      seen.push_back((right < 0 || ahead <= right) && (left < 0 || -ahead <= left));
    }
    TN_TRY(mask, edit.constant<uint8_t>(TN_BOOL, {q[2], k[2]}, seen));
    TN_TRY(causal, edit.op("Where", {mask, zero, never}));
    if (!out) return causal;
    return edit.op("Add", {out, causal});
  }
  // In 16 bits a root of the scale for each operand, since scores may exceed the range without it;
  // else one factor behind the product, which backends join with mask and Softmax.
  Result<Value> scaled_product(Value a, Value b, double scale) const {
    if (TN_DTYPE_BITS(a.dtype()) > 16) {
      TN_TRY(factor, number(scale));
      TN_TRY(product, edit.op("MatMul", {a, b}));
      return edit.op("Mul", {product, factor});
    }
    TN_TRY(root, number(std::sqrt(scale)));
    TN_TRY(left, edit.op("Mul", {a, root}));
    TN_TRY(right, edit.op("Mul", {b, root}));
    return edit.op("MatMul", {left, right});
  }
  // Where a row of the mask hides every key, [.., s or 1, 1]; falsy: nowhere.
  Result<Value> all_hidden(Value added) const {
    if (!node.input(kMask) && node.attr_int("left_window_size", -1) < 0) return Value{};
    TN_TRY(last, edit.ints({-1}));
    TN_TRY(most, edit.op("ReduceMax", {added, last}));
    return edit.op("IsInf", {most}, {{"detect_positive", 0}});
  }
  // x, but 0 in these rows.
  Result<Value> zero_where(Value rows, Value x) const {
    if (!rows) return x;
    TN_TRY(zero, number(0));
    return edit.op("Where", {rows, zero, x});
  }
  Result<Value> probabilities(Value scores) const {
    tn_any precision = node.attr("softmax_precision");
    if (precision.tag != TN_ANY_DTYPE) return edit.op("Softmax", {scores}, {{"axis", -1}});
    TN_TRY(cast, edit.op("Cast", {scores}, {{"to", precision}}));
    TN_TRY(soft, edit.op("Softmax", {cast}, {{"axis", -1}}));
    return edit.op("Cast", {soft}, {{"to", any_dtype(node.input(kQ).dtype())}});
  }
};

Result<Parts> parts_of(EditView edit, Node node) {
  Parts out{edit, node, {}, {}, {}};
  const char* counts[] = {"q_num_heads", "kv_num_heads", "kv_num_heads"};
  std::array<int64_t, 4>* all[] = {&out.q, &out.k, &out.v};
  for (uint64_t i : {kQ, kK, kV}) {
    std::optional<Dims> dims = heads_of(node.input(i).type(), node.attr_int(counts[i]));
    for (size_t d = 0; d < 4; ++d) {
      bool is_open = dims && d == 0 && !(*dims)[d].known();
      if (!dims || (!is_open && !(*dims)[d].known()))
        return unsupported("decomposed only with known sizes of all axes but the batch");
      (*all[i])[d] = is_open ? -1 : *(*dims)[d].value;
    }
  }
  Type past = node.input(kPastKey).type(), mask = node.input(kMask).type();
  if (node.input(kPastKey)) {
    if (!past.ranked || past.rank() != 4 || past.dims[2] < 0)
      return unsupported("decomposed only with a past of known length");
    out.k[2] += past.dims[2], out.v[2] += past.dims[2];
  }
  bool whole =
      !node.input(kMask) || (mask.ranked && mask.rank() > 0 && mask.dims.back() == out.k[2]);
  if (!whole || node.input(kLengths))
    return unsupported("decomposed only with whole masks, without nonpad_kv_seqlen");
  return out;
}

}  // namespace

Result<std::vector<Value>> decomposed(EditView edit, Node node) {
  TN_TRY(p, parts_of(edit, node));
  double scale = node.attr_float("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(p.q[3]));
  TN_TRY(q, p.heads(kQ, kQ, p.q));
  TN_TRY(key, p.heads(kK, kPastKey, p.k));
  TN_TRY(value, p.heads(kV, kPastValue, p.v));
  TN_TRY(k, p.repeated(key, p.k));
  TN_TRY(v, p.repeated(value, p.v));
  const std::vector<int64_t> transpose{0, 1, 3, 2}, packed{0, 2, 1, 3};
  TN_TRY(across, edit.op("Transpose", {k}, {{"perm", transpose}}));
  TN_TRY(rows, p.joined(q, p.q[3]));
  TN_TRY(products, p.scaled_product(rows, across, scale));
  TN_TRY(raw, p.parted(products, p.k[2]));
  Value stages[] = {raw, raw, raw, raw};
  if (double softcap = node.attr_float("softcap"); softcap > 0) {
    TN_TRY(cap, p.number(softcap));
    TN_TRY(part, edit.op("Div", {raw, cap}));
    TN_TRY(bent, edit.op("Tanh", {part}));
    TN_TRY(capped, edit.op("Mul", {bent, cap}));
    stages[kCapped] = stages[kBiased] = capped;
  }
  // A query that no key may answer gives 0. Its scores are left as they are, and its result is
  // replaced: that is less work than in front of the product, the Softmax has no row without a
  // number, whose gradient would be NaN, and backends see scores, mask, Softmax and product in a
  // row.
  TN_TRY(added, p.bias());
  Value none, scores = stages[kCapped];
  if (added) {
    TN_TRY(hidden, p.all_hidden(added));
    none = hidden;
    TN_TRY(seen, p.zero_where(none, added));
    TN_TRY(sum, edit.op("Add", {scores, seen}));
    scores = sum;
  }
  TN_TRY(probabilities, p.probabilities(scores));
  TN_TRY(weighed, p.joined(probabilities, p.k[2]));
  TN_TRY(context, edit.op("MatMul", {weighed, v}));
  TN_TRY(answers, p.parted(context, p.v[3]));
  TN_TRY(y, p.zero_where(none, answers));
  const int64_t mode = std::clamp<int64_t>(node.attr_int("qk_matmul_output_mode"), 0, 3);
  if (node.output(kScores) && added && mode >= kBiased) {
    TN_TRY(biased, edit.op("Add", {stages[kCapped], added}));
    TN_TRY(weights, p.zero_where(none, probabilities));
    stages[kBiased] = biased, stages[kProbabilities] = weights;
  } else {
    stages[kProbabilities] = probabilities;
  }
  if (node.input(kQ).type().rank() == 3) {
    TN_TRY(moved, edit.op("Transpose", {y}, {{"perm", packed}}));
    TN_TRY(flat, p.reshape(moved, {p.q[0], p.q[2], p.q[1] * p.v[3]}));
    y = flat;
  }
  std::vector<Value> out{y, key, value, stages[mode]};
  out.resize(node.n_outputs());
  return out;
}

}  // namespace tenon::ops::attention
