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
  // Each key head for all query heads that share it.
  Result<Value> repeated(Value x, const std::array<int64_t, 4>& dims) const {
    int64_t times = q[1] / dims[1];
    if (times == 1) return x;
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
    if (node.attr_int("is_causal") == 0) return out;
    int64_t offset = k[2] - node.input(kK).type().dims[node.input(kK).type().rank() - 2];
    std::vector<uint8_t> seen;
    for (int64_t i = 0; i < q[2] * k[2]; ++i)
      seen.push_back(i % k[2] <= i / k[2] + offset);
    TN_TRY(mask, edit.constant<uint8_t>(TN_BOOL, {q[2], k[2]}, seen));
    TN_TRY(causal, edit.op("Where", {mask, zero, never}));
    if (!out) return causal;
    return edit.op("Add", {out, causal});
  }
  // Rows in which no key may be seen are 0.
  Result<Value> probabilities(Value scores, Value added) const {
    Value x = scores;
    tn_any precision = node.attr("softmax_precision");
    if (precision.tag == TN_ANY_DTYPE) {
      TN_TRY(cast, edit.op("Cast", {x}, {{"to", precision}}));
      x = cast;
    }
    TN_TRY(soft, edit.op("Softmax", {x}, {{"axis", -1}}));
    TN_TRY(out, edit.op("CastLike", {soft, node.input(kQ)}));
    if (!node.input(kMask)) return out;
    TN_TRY(last, edit.ints({-1}));
    TN_TRY(most, edit.op("ReduceMax", {added, last}));
    TN_TRY(none, edit.op("IsInf", {most}, {{"detect_positive", 0}}));
    TN_TRY(zero, number(0));
    return edit.op("Where", {none, zero, out});
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
  bool windows =
      node.attr_int("left_window_size", -1) >= 0 || node.attr_int("right_window_size", -1) >= 0;
  if (!whole || windows || node.input(kLengths))
    return unsupported("decomposed only with whole masks, without windows and lengths");
  return out;
}

}  // namespace

Result<std::vector<Value>> decomposed(EditView edit, Node node) {
  TN_TRY(p, parts_of(edit, node));
  double scale = node.attr_float("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(p.q[3]));
  TN_TRY(root, p.number(std::sqrt(scale)));
  TN_TRY(q, p.heads(kQ, kQ, p.q));
  TN_TRY(key, p.heads(kK, kPastKey, p.k));
  TN_TRY(value, p.heads(kV, kPastValue, p.v));
  TN_TRY(k, p.repeated(key, p.k));
  TN_TRY(v, p.repeated(value, p.v));
  const std::vector<int64_t> transpose{0, 1, 3, 2}, packed{0, 2, 1, 3};
  TN_TRY(across, edit.op("Transpose", {k}, {{"perm", transpose}}));
  TN_TRY(left, edit.op("Mul", {q, root}));
  TN_TRY(right, edit.op("Mul", {across, root}));
  TN_TRY(raw, edit.op("MatMul", {left, right}));
  Value stages[] = {raw, raw, raw, raw};
  if (double softcap = node.attr_float("softcap"); softcap > 0) {
    TN_TRY(cap, p.number(softcap));
    TN_TRY(part, edit.op("Div", {raw, cap}));
    TN_TRY(bent, edit.op("Tanh", {part}));
    TN_TRY(capped, edit.op("Mul", {bent, cap}));
    stages[kCapped] = stages[kBiased] = capped;
  }
  TN_TRY(added, p.bias());
  if (added) {
    TN_TRY(biased, edit.op("Add", {stages[kBiased], added}));
    stages[kBiased] = biased;
  }
  TN_TRY(probabilities, p.probabilities(stages[kBiased], added));
  stages[kProbabilities] = probabilities;
  TN_TRY(y, edit.op("MatMul", {probabilities, v}));
  if (node.input(kQ).type().rank() == 3) {
    TN_TRY(moved, edit.op("Transpose", {y}, {{"perm", packed}}));
    TN_TRY(flat, p.reshape(moved, {p.q[0], p.q[2], p.q[1] * p.v[3]}));
    y = flat;
  }
  std::vector<Value> out{y, key, value,
                         stages[std::clamp<int64_t>(node.attr_int("qk_matmul_output_mode"), 0, 3)]};
  out.resize(node.n_outputs());
  return out;
}

}  // namespace tenon::ops::attention
