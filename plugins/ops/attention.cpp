// SPDX-License-Identifier: Apache-2.0
// Attention: softmax(q k' + bias) v per head, with a cache, masks, windows and shared key heads.
#include "attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "cells.hpp"
#include "cost.hpp"
#include "dispatch.hpp"
#include "numbers.hpp"
#include "sampling.hpp"
#include "stated.hpp"

namespace tenon::ops {
namespace {

using namespace attention;  // NOLINT(google-build-using-namespace): the same operator

Status attention_shape(EditView edit, Node node) {
  Type q = node.input(kQ).type();
  auto heads = [&](Input i, const char* count) {
    return heads_of(node.input(i).type(), node.attr_int(count));
  };
  std::optional<Dims> a = heads(kQ, "q_num_heads"), b = heads(kK, "kv_num_heads"),
                      c = heads(kV, "kv_num_heads");
  if (!a || !b || !c) {
    for (uint64_t i = 0; i < node.n_outputs(); ++i)
      TN_CHECK(set_output(edit, node, i, unranked(q.dtype)));
    return {};
  }
  for (const Dims* dims : {&*a, &*b, &*c})
    if ((*dims)[1].known() && *(*dims)[1].value < 1)
      return invalid("heads: expected at least one, got none");
  Dims y{(*a)[0], (*a)[1], (*a)[2], (*c)[3]}, key = *b, value = *c;
  if (q.rank() == 3) y = {(*a)[0], (*a)[2], (*a)[1] * (*c)[3]};
  if (node.input(kPastKey)) {
    Type past = node.input(kPastKey).type();
    key[2] = past.ranked && past.rank() == 4 ? key[2] + dims_of(past)[2] : Dim();
    value[2] = key[2];
  }
  TN_CHECK(set_output(edit, node, kY, q.dtype, y));
  TN_CHECK(set_output(edit, node, kPresentKey, node.input(kK).dtype(), key));
  TN_CHECK(set_output(edit, node, kPresentValue, node.input(kV).dtype(), value));
  return set_output(edit, node, kScores, q.dtype, {(*a)[0], (*a)[1], (*a)[2], key[2]});
}

// Numbers as [b, heads, s, d].
struct Heads {
  std::array<int64_t, 4> dims{};
  std::vector<double> data;
  int64_t at(int64_t b, int64_t h, int64_t s) const {
    return ((b * dims[1] + h) * dims[2] + s) * dims[3];
  }
};

// past: the input that stands before this one along s, where it is given.
Result<Heads> read_heads(const Call& call, uint64_t i, const char* count, uint64_t past) {
  std::span<const int64_t> shape = call.shape(i);
  int64_t heads = call.node().attr_int(count);
  bool packed = shape.size() == 3;
  if (!packed && shape.size() != 4)
    return invalid(cat("input ", i, ": expected rank 3 or 4, got ", shape.size()));
  if (packed && (heads < 1 || shape[2] % heads != 0))
    return invalid(cat(count, ": expected a divisor of ", shape[2], ", got ", heads));
  Heads out;
  if (packed)
    out.dims = {shape[0], heads, shape[1], shape[2] / heads};
  else
    std::copy(shape.begin(), shape.end(), out.dims.begin());
  auto [batch, n_heads, length, size] = out.dims;
  int64_t before = 0;
  if (past != i && call.has(past)) {
    std::span<const int64_t> p = call.shape(past);
    if (p.size() != 4 || p[0] != batch || p[1] != n_heads || p[3] != size)
      return invalid(cat("input ", past, ": expected [", batch, ", ", n_heads, ", s, ", size, "]"));
    before = p[2];
  }
  out.dims[2] = before + length;
  out.data.resize(static_cast<size_t>(batch * n_heads * out.dims[2] * size));
  for (int64_t row = 0, n = batch * n_heads * out.dims[2]; row < n; ++row) {
    int64_t s = row % out.dims[2], h = row / out.dims[2] % n_heads, b = row / out.dims[2] / n_heads;
    bool old = s < before;
    s -= old ? 0 : before;
    int64_t from = old      ? (b * n_heads + h) * before + s
                   : packed ? (b * length + s) * n_heads + h
                            : (b * n_heads + h) * length + s;
    uint64_t source = old ? past : i;
    for (int64_t d = 0; d < size; ++d)
      out.data[static_cast<size_t>(row * size + d)] =
          load_number(call.data<char>(source), call.dtype(source), from * size + d);
  }
  return out;
}

// What is added to the score of a query and a key: 0, minus infinity, or a number of the mask.
class Bias {
 public:
  static Result<Bias> of(const Call& call, std::array<int64_t, 4> scores) {
    Bias bias(call, scores[3]);
    Node node = call.node();
    if (call.has(kMask)) {
      std::span<const int64_t> shape = call.shape(kMask);
      if (shape.empty() || shape.size() > 4 || shape.back() > scores[3])
        return invalid("attn_mask: expected a shape that broadcasts to the scores");
      std::vector<int64_t> strides = dense_strides(shape);
      for (size_t i = 0; i < shape.size(); ++i) {
        size_t axis = 4 - shape.size() + i;
        if (axis < 3 && shape[i] != 1 && shape[i] != scores[axis])
          return invalid(cat("attn_mask axis ", i, ": expected 1 or ", scores[axis]));
        bias.strides_[axis] = shape[i] == 1 && axis < 3 ? 0 : strides[i];
      }
      bias.mask_length_ = shape.back();
    }
    bias.offsets_.assign(static_cast<size_t>(scores[0]), 0);
    if (call.has(kPastKey)) {
      bias.offsets_.assign(bias.offsets_.size(), call.shape(kPastKey)[2]);
    } else if (call.has(kLengths)) {
      bias.lengths_ = read_ints(call.in(kLengths));
      if (bias.lengths_.size() != bias.offsets_.size())
        return invalid(cat("nonpad_kv_seqlen: expected ", scores[0], " numbers"));
      TN_CHECK(expect_moderate("nonpad_kv_seqlen", bias.lengths_, 0, scores[3]));
      for (size_t b = 0; b < bias.offsets_.size(); ++b)
        bias.offsets_[b] = bias.lengths_[b] - scores[2];
    }
    // Wider than any sequence, a window says nothing; a position plus it stays within 64 bits.
    constexpr int64_t kWidest = int64_t{1} << 62;
    bias.right_ = std::min(node.attr_int("right_window_size", -1), kWidest);
    bias.left_ = std::min(node.attr_int("left_window_size", -1), kWidest);
    bias.causal_ = node.attr_int("is_causal") != 0;
    return bias;
  }

  double at(int64_t b, int64_t h, int64_t q, int64_t k) const {
    auto batch = static_cast<size_t>(b);
    int64_t position = offsets_[batch] + q;
    if (causal_ && k > position) return kMinusInf;
    if (left_ >= 0 && k < position - left_) return kMinusInf;
    if (right_ >= 0 && k > position + right_) return kMinusInf;
    if (!lengths_.empty() && k >= lengths_[batch]) return kMinusInf;
    if (!call_.has(kMask)) return 0;
    if (k >= mask_length_) return kMinusInf;
    int64_t i = b * strides_[0] + h * strides_[1] + q * strides_[2] + k * strides_[3];
    double value = load_number(call_.data<char>(kMask), call_.dtype(kMask), i);
    return call_.dtype(kMask) != TN_BOOL ? value : value != 0 ? 0 : kMinusInf;
  }

 private:
  Bias(const Call& call, int64_t length) : call_(call), mask_length_(length) {}
  const Call& call_;
  std::array<int64_t, 4> strides_{};
  int64_t mask_length_, left_ = -1, right_ = -1;
  bool causal_ = false;
  std::vector<int64_t> offsets_, lengths_;
};

// One attention: every step leaves numbers of the inputs' type, as the operators of the function
// body would; sums within a step are double.
template <class T>
struct Attend {
  const Call& call;
  const Heads &q, &k, &v;
  const Bias& bias;
  double scale, softcap;
  int64_t mode;
  bool wide_softmax;    // in float or double although T is narrower
  T* y;                 // [b, heads, s, d], or [b, s, heads, d] where packed
  T* scores = nullptr;  // optional
  bool packed;

  static double rounded(double value) { return static_cast<double>(static_cast<T>(value)); }

  void row(int64_t b, int64_t h, int64_t i) const {
    int64_t shared = h / (q.dims[1] / k.dims[1]), n = k.dims[2], size = q.dims[3];
    std::vector<double> line(static_cast<size_t>(n));
    T* kept = scores ? scores + ((b * q.dims[1] + h) * q.dims[2] + i) * n : nullptr;
    auto keep = [&](ScoresMode at, int64_t j, double value) {
      if (kept && mode == at) kept[j] = static_cast<T>(value);
    };
    bool none = true;
    for (int64_t j = 0; j < n; ++j) {
      // Heads of no size have no numbers to point at.
      const double *a = q.data.data() + q.at(b, h, i), *c = k.data.data() + k.at(b, shared, j);
      double sum = 0, root = rounded(std::sqrt(scale));
      for (int64_t d = 0; d < size; ++d)
        sum += rounded(a[d] * root) * rounded(c[d] * root);
      sum = rounded(sum);
      keep(kRaw, j, sum);
      if (softcap > 0) sum = rounded(softcap * rounded(std::tanh(rounded(sum / softcap))));
      keep(kCapped, j, sum);
      double added = bias.at(b, h, i, j);
      none = none && added == kMinusInf;
      sum = rounded(sum + added);
      keep(kBiased, j, sum);
      line[static_cast<size_t>(j)] = sum;
    }
    softmax(line, none);
    for (int64_t j = 0; j < n; ++j)
      keep(kProbabilities, j, line[static_cast<size_t>(j)]);
    int64_t width = v.dims[3];
    T* out =
        y + (packed ? (b * q.dims[2] + i) * q.dims[1] + h : (b * q.dims[1] + h) * q.dims[2] + i) *
                width;
    for (int64_t d = 0; d < width; ++d) {
      double sum = 0;
      for (int64_t j = 0; j < n; ++j)
        sum += line[static_cast<size_t>(j)] * v.data[static_cast<size_t>(v.at(b, shared, j) + d)];
      out[d] = static_cast<T>(sum);
    }
  }

  // A query that no key may answer has probabilities of 0.
  void softmax(std::vector<double>& line, bool none) const {
    if (none) return std::fill(line.begin(), line.end(), 0.0);
    double highest = *std::max_element(line.begin(), line.end()), sum = 0;
    auto step = [&](double value) { return wide_softmax ? value : rounded(value); };
    for (double& value : line)
      sum += value = step(std::exp(step(value - highest)));
    for (double& value : line)
      value = rounded(value / step(sum));
  }
};

template <class T>
Status copy_present(const Call& call, uint64_t i, uint32_t dtype, const Heads& heads) {
  if (!call.node().output(i)) return {};
  TN_TRY(out, call.out(i, dtype, heads.dims));
  for (size_t k = 0; k < heads.data.size(); ++k)
    store_number(data_of<char>(out), dtype, static_cast<int64_t>(k), heads.data[k]);
  return {};
}

Status attention_ref(const Call& call) {
  Node node = call.node();
  TN_TRY(q, read_heads(call, kQ, "q_num_heads", kQ));
  TN_TRY(k, read_heads(call, kK, "kv_num_heads", kPastKey));
  TN_TRY(v, read_heads(call, kV, "kv_num_heads", kPastValue));
  if (q.dims[0] != k.dims[0] || k.dims[0] != v.dims[0] || k.dims[1] != v.dims[1] ||
      k.dims[2] != v.dims[2] || q.dims[3] != k.dims[3])
    return invalid("expected q, k and v of one batch, k and v of one length, q and k of one size");
  if (k.dims[1] < 1 || q.dims[1] % k.dims[1] != 0)
    return invalid(cat("q_num_heads: expected a multiple of ", k.dims[1], ", got ", q.dims[1]));
  std::array<int64_t, 4> scores{q.dims[0], q.dims[1], q.dims[2], k.dims[2]};
  TN_TRY(bias, Bias::of(call, scores));
  bool packed = call.shape(kQ).size() == 3;
  std::vector<int64_t> shape{q.dims[0], q.dims[1], q.dims[2], v.dims[3]};
  if (packed) shape = {q.dims[0], q.dims[2], q.dims[1] * v.dims[3]};
  TN_TRY(out, call.out(kY, call.dtype(kQ), shape));
  tn_any precision = node.attr("softmax_precision");
  uint32_t softmax_type = precision.tag == TN_ANY_DTYPE ? uint32_t(precision.v.u) : call.dtype(kQ);
  return dispatch<kFloats>(
      call.dtype(kQ), [&, &a = q, &b = k, &c = v, &added = bias, &y = out]<class T>() -> Status {
        TN_CHECK(copy_present<T>(call, kPresentKey, call.dtype(kK), b));
        TN_CHECK(copy_present<T>(call, kPresentValue, call.dtype(kV), c));
        T* kept = nullptr;
        if (node.output(kScores)) {
          TN_TRY(raw, call.out(kScores, call.dtype(kQ), scores));
          kept = data_of<T>(raw);
        }
        double scale = node.attr_float("scale");
        Attend<T> attend{call,
                         a,
                         b,
                         c,
                         added,
                         scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(a.dims[3])),
                         node.attr_float("softcap"),
                         node.attr_int("qk_matmul_output_mode"),
                         TN_DTYPE_BITS(softmax_type) > TN_DTYPE_BITS(call.dtype(kQ)),
                         data_of<T>(y),
                         kept,
                         packed};
        auto rows = static_cast<uint64_t>(a.dims[0] * a.dims[1] * a.dims[2]);
        parallel_for(call.ctx(), rows, 1, [&](uint64_t begin, uint64_t end) {
          for (auto r = static_cast<int64_t>(begin); r < static_cast<int64_t>(end); ++r)
            attend.row(r / a.dims[2] / a.dims[1], r / a.dims[2] % a.dims[1], r % a.dims[2]);
        });
        return {};
      });
}

Result<Node> attention_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t batch = random.integer(1, 2), kv_heads = random.integer(1, 2),
          heads = kv_heads * random.integer(1, 2), size = 2 * random.integer(1, 3);
  int64_t queries = random.integer(1, 4), keys = random.integer(1, 4), width = random.integer(1, 3);
  bool packed = random.coin(), past = random.coin();
  auto shape = [&](int64_t h, int64_t s, int64_t d) {
    return packed ? std::vector<int64_t>{batch, s, h * d} : std::vector<int64_t>{batch, h, s, d};
  };
  TN_TRY(q, random.input(TN_F32, shape(heads, queries, size)));
  TN_TRY(k, random.input(TN_F32, shape(kv_heads, keys, size)));
  TN_TRY(v, random.input(TN_F32, shape(kv_heads, keys, width)));
  std::vector<Value> inputs{q, k, v, Value{}};
  if (random.coin()) {
    TN_TRY(mask, random.input(TN_F32, {queries, keys + (past ? 2 : 0)}));
    inputs[kMask] = mask;
  }
  if (past) {
    TN_TRY(key, random.input(TN_F32, {batch, kv_heads, 2, size}));
    TN_TRY(value, random.input(TN_F32, {batch, kv_heads, 2, width}));
    inputs.insert(inputs.end(), {key, value});
  }
  std::vector<Attr> attrs{{"is_causal", random.integer(0, 1)},
                          {"softcap", random.coin() ? 2.0 : 0.0},
                          {"qk_matmul_output_mode", random.integer(0, 3)}};
  if (packed) {
    attrs.emplace_back("q_num_heads", heads);
    attrs.emplace_back("kv_num_heads", kv_heads);
  }
  return edit.add({.type = "Attention", .inputs = inputs, .attrs = attrs, .n_outputs = 4});
}

// Two products, each over queries, keys and the size of a head.
OpCost attention_cost(Node node) {
  Type q = node.input(kQ).type(), k = node.input(kK).type(), past = node.input(kPastKey).type();
  if (!q.is_static() || !k.is_static() || k.rank() < 3) return {0, node_bytes(node)};
  int64_t keys = k.dims[k.rank() - 2];
  if (node.input(kPastKey) && past.is_static() && past.rank() == 4) keys += past.dims[2];
  double products = static_cast<double>(q.elements()) + output_elements(node);
  return {2 * products * static_cast<double>(keys), node_bytes(node)};
}

constexpr tn_op kAttention = op_row(
    {.type = "Attention",
     .since = 25,
     .attributes = R"([{"name": "is_causal", "type": "int", "default": 0},
                              {"name": "kv_num_heads", "type": "int"},
                              {"name": "left_window_size", "type": "int", "default": -1},
                              {"name": "q_num_heads", "type": "int"},
                              {"name": "qk_matmul_output_mode", "type": "int", "default": 0},
                              {"name": "right_window_size", "type": "int", "default": -1},
                              {"name": "scale", "type": "float"},
                              {"name": "softcap", "type": "float", "default": 0.0},
                              {"name": "softmax_precision", "type": "dtype"}])",
     .shape = shape<
         attention_shape,
         "q: T[b q..], k: T[b q'..], v: U[b q'..], mask: number|bool?, past_key: T[b h _ _]?, "
         "past_value: U[b h _ _]?, nonpad_kv_seqlen: int[b]? ; T = float, U = float">,
     .decompose = decompose<decomposed>,
     .cost = cost<attention_cost>,
     .ref = ref<attention_ref>,
     .sample = sample<attention_sample>,
     .cast = "cpu=low cuda=low",
     .coupling = "attention q=0 k=1 v=2 mask=3 past_key=4 past_value=5 q_heads=q_num_heads "
                 "kv_heads=kv_num_heads"});

}  // namespace

TENON_OPS(attention, &kAttention)

}  // namespace tenon::ops
