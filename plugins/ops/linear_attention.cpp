// SPDX-License-Identifier: Apache-2.0
// Sequence mixers that carry a state: LinearAttention (Yang et al. 2024, gated delta rule) and
// CausalConvWithState.
#include <algorithm>
#include <cmath>

#include "bodies.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

double number(const Call& call, uint64_t i, int64_t at) {
  return load_number(call.data<char>(i), call.dtype(i), at);
}

enum Input : uint64_t { kQuery, kKey, kValue, kPast, kDecay, kBeta };

Dim per_head(const Type& type, int64_t heads) {
  return type.ranked && type.rank() == 3 && heads > 0 ? quotient({dims_of(type)[2]}, {Dim(heads)})
                                                      : Dim();
}

Status linear_shape(EditView edit, Node node) {
  Type q = node.input(kQuery).type(), past = node.input(kPast).type();
  int64_t heads = node.attr_int("q_num_heads"), shared = node.attr_int("kv_num_heads");
  Dim key = per_head(node.input(kKey).type(), shared),
      value = per_head(node.input(kValue).type(), shared);
  Dims in = q.ranked && q.rank() == 3 ? dims_of(q) : Dims(3);
  TN_CHECK(set_output(edit, node, 0, q.dtype, {in[0], in[1], value * Dim(heads)}));
  return set_output(edit, node, 1, node.input(kPast) ? past.dtype : q.dtype,
                    {in[0], shared, key, value});
}

struct Linear {
  bool gated, corrected;
  int64_t batch, length, heads, shared, key, value;
  int64_t decays, betas;  // how many of each one step has
  double scale;
};

// Which inputs the rule needs.
Status read_rule(const Call& call, Linear& l) {
  std::string_view rule = call.node().attr_text("update_rule", "gated_delta");
  l.gated = rule == "gated" || rule == "gated_delta";
  l.corrected = rule == "delta" || rule == "gated_delta";
  if (!l.gated && !l.corrected && rule != "linear")
    return invalid(
        cat("update_rule: expected one of linear, gated, delta, gated_delta, got '", rule, "'"));
  if (l.gated == call.has(kDecay) && l.corrected == call.has(kBeta)) return {};
  return invalid(cat("update_rule ", rule, ": expected decay ", l.gated ? "given" : "absent",
                     " and beta ", l.corrected ? "given" : "absent"));
}

Status read_sizes(const Call& call, Linear& l) {
  for (uint64_t i : {kQuery, kKey, kValue})
    if (call.shape(i).size() != 3)
      return invalid(cat("input ", i, ": expected rank 3, got ", call.shape(i).size()));
  l.heads = call.node().attr_int("q_num_heads"), l.shared = call.node().attr_int("kv_num_heads");
  std::span<const int64_t> q = call.shape(kQuery), k = call.shape(kKey), v = call.shape(kValue);
  if (l.heads < 1 || l.shared < 1 || l.heads % l.shared != 0 || q[2] % l.heads != 0 ||
      v[2] % l.shared != 0)
    return invalid("q_num_heads: expected a multiple of kv_num_heads; both divide their inputs");
  l.batch = q[0], l.length = q[1], l.key = q[2] / l.heads, l.value = v[2] / l.shared;
  if (k[0] != q[0] || v[0] != q[0] || k[1] != q[1] || v[1] != q[1] || k[2] != l.shared * l.key)
    return invalid("expected query, key and value of one batch, length and size of a head");
  return {};
}

// How many decays and betas a step has.
Status read_step_counts(const Call& call, Linear& l) {
  int64_t steps = std::max<int64_t>(l.batch * l.length, 1);
  if (l.gated) l.decays = element_count(call.in(kDecay)) / steps;
  if (l.corrected) l.betas = element_count(call.in(kBeta)) / steps;
  if (l.gated && l.decays != l.shared && l.decays != l.shared * l.key)
    return invalid(cat("decay: expected ", l.shared, " or ", l.shared * l.key, " numbers a step"));
  if (l.corrected && l.betas != l.shared && l.betas != 1)
    return invalid(cat("beta: expected 1 or ", l.shared, " numbers a step"));
  return {};
}

Result<Linear> linear_of(const Call& call) {
  Linear l{};
  TN_CHECK(read_rule(call, l));
  TN_CHECK(read_sizes(call, l));
  TN_CHECK(read_step_counts(call, l));
  l.scale = call.node().attr_float("scale");
  if (l.scale == 0) l.scale = 1 / std::sqrt(static_cast<double>(l.key));
  if (call.has(kPast) &&
      to_vector(call.shape(kPast)) != std::vector<int64_t>{l.batch, l.shared, l.key, l.value})
    return invalid(
        cat("past_state: expected [", l.batch, ", ", l.shared, ", ", l.key, ", ", l.value, "]"));
  return l;
}

// One step of one head: the state decays, forgets what the key held, and learns the value.
void update(
    const Call& call, const Linear& l, int64_t step, int64_t h, std::vector<double>& state) {
  auto cell = [&](int64_t d, int64_t m) -> double& {
    return state[static_cast<size_t>(d * l.value + m)];
  };
  auto key = [&](int64_t d) { return number(call, kKey, (step * l.shared + h) * l.key + d); };
  for (int64_t d = 0; l.gated && d < l.key; ++d) {
    int64_t at = l.decays == l.shared ? step * l.shared + h : (step * l.shared + h) * l.key + d;
    double decay = std::exp(number(call, kDecay, at));
    for (int64_t m = 0; m < l.value; ++m)
      cell(d, m) *= decay;
  }
  for (int64_t m = 0; m < l.value; ++m) {
    double value = number(call, kValue, (step * l.shared + h) * l.value + m);
    if (l.corrected) {
      double held = 0;
      for (int64_t d = 0; d < l.key; ++d)
        held += cell(d, m) * key(d);
      value = number(call, kBeta, step * l.betas + (l.betas == 1 ? 0 : h)) * (value - held);
    }
    for (int64_t d = 0; d < l.key; ++d)
      cell(d, m) += key(d) * value;
  }
}

Status linear_ref(const Call& call) {
  TN_TRY(linear, linear_of(call));
  const Linear& l = linear;
  uint32_t kept = call.has(kPast) ? call.dtype(kPast) : call.dtype(kQuery);
  TN_TRY(out, call.out(0, call.dtype(kQuery), {l.batch, l.length, l.heads * l.value}));
  std::optional<DLTensor> present;
  if (call.node().output(1)) {
    TN_TRY(second, call.out(1, kept, {l.batch, l.shared, l.key, l.value}));
    present = second;
  }
  const DLTensor& y = out;
  int64_t cells = l.key * l.value, group = l.heads / l.shared;
  auto body = [&](uint64_t begin, uint64_t end) {
    std::vector<double> state(static_cast<size_t>(cells));
    for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
      int64_t b = i / l.shared, h = i % l.shared;
      for (int64_t c = 0; c < cells; ++c)
        state[static_cast<size_t>(c)] = call.has(kPast) ? number(call, kPast, i * cells + c) : 0;
      for (int64_t t = 0; t < l.length; ++t) {
        int64_t step = b * l.length + t;
        update(call, l, step, h, state);
        for (int64_t q = h * group; q < (h + 1) * group; ++q) {
          for (int64_t m = 0; m < l.value; ++m) {
            double sum = 0;
            for (int64_t d = 0; d < l.key; ++d)
              sum += number(call, kQuery, (step * l.heads + q) * l.key + d) *
                     state[static_cast<size_t>(d * l.value + m)];
            store_number(data_of<char>(y), call.dtype(kQuery), (step * l.heads + q) * l.value + m,
                         l.scale * sum);
          }
        }
      }
      for (int64_t c = 0; present && c < cells; ++c)
        store_number(data_of<char>(*present), kept, i * cells + c, state[static_cast<size_t>(c)]);
    }
  };
  parallel_for(call.ctx(), static_cast<uint64_t>(l.batch * l.shared), 1, body);
  return {};
}

Result<Node> linear_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  constexpr const char* kRules[] = {"linear", "gated", "delta", "gated_delta"};
  int64_t rule = random.integer(0, 3), batch = random.integer(1, 2), s = random.integer(1, 4);
  int64_t shared = random.integer(1, 2), heads = shared * random.integer(1, 2);
  int64_t key = random.integer(1, 3), value = random.integer(1, 3);
  TN_TRY(q, random.input(TN_F32, {batch, s, heads * key}));
  TN_TRY(k, random.input(TN_F32, {batch, s, shared * key}));
  TN_TRY(v, random.input(TN_F32, {batch, s, shared * value}));
  TN_TRY(past, random.input(TN_F32, {batch, shared, key, value}));
  std::vector<Value> inputs{q, k, v, random.coin() ? past : Value{}, Value{}, Value{}};
  if (rule == 1 || rule == 3) {
    TN_TRY(decay, random.input(TN_F32, {batch, s, random.coin() ? shared : shared * key}));
    inputs[kDecay] = decay;
  }
  if (rule >= 2) {
    TN_TRY(beta, random.input(TN_F32, {batch, s, random.coin() ? 1 : shared}));
    inputs[kBeta] = beta;
  }
  return edit.add(
      {.type = "LinearAttention",
       .inputs = inputs,
       .attrs = {{"update_rule", kRules[rule]}, {"q_num_heads", heads}, {"kv_num_heads", shared}},
       .n_outputs = 2});
}

// A Scan over steps, in float32 at least as sums over all steps are: every head has a state
// [key, value].
Result<std::vector<Value>> linear_decompose(EditView edit, Node node) {
  Builder b(edit);
  Type q = node.input(kQuery).type(), v = node.input(kValue).type();
  int64_t heads = node.attr_int("q_num_heads"), shared = node.attr_int("kv_num_heads");
  if (!q.is_static() || !v.is_static() || q.rank() != 3 || v.rank() != 3 || heads < 1 || shared < 1)
    return unsupported("LinearAttention: composite where all sizes are known");
  int64_t n = q.dims[0], steps = q.dims[1], key = q.dims[2] / heads, value = v.dims[2] / shared;
  const uint32_t wide = TN_DTYPE_BITS(q.dtype) < 32 ? uint32_t{TN_F32} : q.dtype;
  const uint32_t kept = node.input(kPast) ? node.input(kPast).dtype() : q.dtype;
  auto split = [&](uint64_t i, const std::vector<int64_t>& rest) {  // [steps, n, rest]
    std::vector<int64_t> dims{n, steps};
    dims.insert(dims.end(), rest.begin(), rest.end());
    return b.transpose(b.cast(b.reshape(node.input(i), dims), wide), {1, 0, 2, 3, 4});
  };
  std::vector<int64_t> state_dims{n, shared, key, value};
  std::vector<Value> inputs{node.input(kPast)
                                ? b.cast(node.input(kPast), wide)
                                : b.op("Expand", {b.number(0, wide), b.ints(state_dims)}),
                            split(kQuery, {shared, heads / shared, key}),
                            split(kKey, {shared, key, 1}), split(kValue, {shared, 1, value})};
  if (node.input(kDecay)) inputs.push_back(b.op("Exp", {split(kDecay, {shared, -1, 1})}));
  if (node.input(kBeta)) inputs.push_back(split(kBeta, {-1, 1, 1}));
  TN_CHECK(b.status());
  double scale = node.attr_float("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(key));
  TN_TRY(body, make_body(edit, [&](const Edit& inner) -> Status {
           Builder c(inner);
           std::vector<Value> in;
           for (size_t i = 0; i < inputs.size(); ++i) {
             Type type = inputs[i].type();
             if (i > 0) type.dims.erase(type.dims.begin());
             in.push_back(c.take(inner.input(cat("in", i), Type(type.dtype, type.dims))));
           }
           Value state = in[0], learned = in[3];
           if (node.input(kDecay)) state = c.mul(state, in[4]);
           if (node.input(kBeta)) {
             Value held = c.sum(c.mul(state, in[2]), {2});
             learned = c.mul(in.back(), c.sub(learned, held));
           }
           state = c.add(state, c.mul(in[2], learned));
           Value y = c.mul(c.op("MatMul", {in[1], state}), c.number(scale, wide));
           TN_CHECK(c.status());
           TN_CHECK(inner.output("state", state));
           return inner.output("y", y);
         }));
  TN_TRY(scan, edit.add({.type = "Scan",
                         .inputs = inputs,
                         .attrs = {{"body", any_graph(body.get())},
                                   {"num_scan_inputs", static_cast<int64_t>(inputs.size() - 1)}},
                         .n_outputs = 2}));
  Value y = b.transpose(scan.output(1), {1, 0, 2, 3, 4});
  std::vector<Value> out{b.cast(b.reshape(y, {n, steps, heads * value}), q.dtype),
                         b.cast(scan.output(0), kept)};
  out.resize(node.n_outputs());
  TN_CHECK(b.status());
  return out;
}

// A grouped Conv over the state and the steps after it.
Result<std::vector<Value>> causal_decompose(EditView edit, Node node) {
  Builder b(edit);
  Type x = node.input(0).type(), w = node.input(1).type();
  if (!x.is_static() || !w.is_static() || x.rank() != 3 || w.rank() != 3)
    return unsupported("CausalConvWithState: composite where all sizes are known");
  int64_t kept = w.dims[2] - 1;
  Value state = node.input(3);
  if (!state) state = b.op("Expand", {b.number(0, x.dtype), b.ints({x.dims[0], x.dims[1], kept})});
  Value all = b.op("Concat", {state, node.input(0)}, {{"axis", 2}});
  std::vector<Value> inputs{all, node.input(1)};
  if (node.input(2)) inputs.push_back(node.input(2));
  Value y = b.op("Conv", inputs, {{"group", x.dims[1]}});
  if (node.attr_text("activation", "none") != "none") y = b.mul(y, b.op("Sigmoid", {y}));
  std::vector<Value> out{y};
  if (node.n_outputs() > 1)
    out.push_back(
        b.op("Slice", {all, b.ints({x.dims[2]}), b.ints({x.dims[2] + kept}), b.ints({2})}));
  TN_CHECK(b.status());
  return out;
}

// input [n, c, s], weight [c, 1, k]; the state is the last k - 1 steps.
Status causal_shape(EditView edit, Node node) {
  Type x = node.input(0).type(), weight = node.input(1).type();
  TN_CHECK(set_output(edit, node, 0, x));
  if (!x.ranked || x.rank() != 3) return set_output(edit, node, 1, unranked(x.dtype));
  Dims state = dims_of(x);
  state[2] = weight.ranked && weight.rank() == 3 ? dims_of(weight)[2] - Dim(1) : Dim();
  return set_output(edit, node, 1, x.dtype, state);
}

Status causal_ref(const Call& call) {
  std::span<const int64_t> x = call.shape(0), w = call.shape(1);
  if (x.size() != 3 || w.size() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1)
    return invalid("expected input [n, c, s] and weight [c, 1, k]");
  std::string_view activation = call.node().attr_text("activation", "none");
  bool swish = activation == "silu" || activation == "swish";
  if (!swish && activation != "none")
    return invalid(cat("activation: expected one of none, silu, swish, got '", activation, "'"));
  int64_t channels = x[1], length = x[2], k = w[2];
  if (call.has(2) && element_count(call.in(2)) != channels)
    return invalid(cat("bias: expected ", channels, " numbers"));
  if (call.has(3) && to_vector(call.shape(3)) != std::vector<int64_t>{x[0], channels, k - 1})
    return invalid(cat("past_state: expected [", x[0], ", ", channels, ", ", k - 1, "]"));
  uint32_t dtype = call.dtype(0);
  TN_TRY(out, call.out(0, dtype, x));
  std::optional<DLTensor> present;
  if (call.node().output(1)) {
    TN_TRY(second, call.out(1, dtype, {x[0], channels, k - 1}));
    present = second;
  }
  for (int64_t row = 0; row < x[0] * channels; ++row) {
    int64_t c = row % channels;
    auto at = [&](int64_t t) {  // steps before the first are the state
      if (t >= 0) return number(call, 0, row * length + t);
      return call.has(3) ? number(call, 3, row * (k - 1) + k - 1 + t) : 0;
    };
    for (int64_t t = 0; t < length; ++t) {
      double sum = call.has(2) ? number(call, 2, c) : 0;
      for (int64_t i = 0; i < k; ++i)
        sum += number(call, 1, c * k + i) * at(t - k + 1 + i);
      store_number(data_of<char>(out), dtype, row * length + t,
                   swish ? sum / (1 + std::exp(-sum)) : sum);
    }
    for (int64_t i = 0; present && i < k - 1; ++i)
      store_number(data_of<char>(*present), dtype, row * (k - 1) + i, at(length - k + 1 + i));
  }
  return {};
}

Result<Node> causal_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t n = random.integer(1, 2), c = random.integer(1, 3), k = random.integer(1, 4);
  TN_TRY(x, random.input(TN_F32, {n, c, random.integer(1, 5)}));
  TN_TRY(w, random.input(TN_F32, {c, 1, k}));
  TN_TRY(bias, random.input(TN_F32, {c}));
  TN_TRY(state, random.input(TN_F32, {n, c, k - 1}));
  return edit.add(
      {.type = "CausalConvWithState",
       .inputs = {x, w, random.coin() ? bias : Value{}, random.coin() ? state : Value{}},
       .attrs = {{"activation", random.coin() ? "silu" : "none"}},
       .n_outputs = 2});
}

OpCost linear_cost(Node node) {
  Type state = node.output(1).type(), q = node.input(kQuery).type();
  bool known = node.n_outputs() > 1 && state.is_static() && q.is_static() && q.rank() == 3;
  double steps = known ? static_cast<double>(q.dims[1]) : 0;
  return {known ? 8 * steps * static_cast<double>(state.elements()) : 0, node_bytes(node)};
}
OpCost causal_cost(Node node) {
  Type w = node.input(1).type();
  double k = w.is_static() && w.rank() == 3 ? static_cast<double>(w.dims[2]) : 0;
  return {2 * k * output_elements(node), node_bytes(node)};
}

constexpr tn_op kLinear =
    op_row({.type = "LinearAttention",
            .since = 27,
            .attributes = R"([{"name": "chunk_size", "type": "int"},
                              {"name": "kv_num_heads", "type": "int"},
                              {"name": "q_num_heads", "type": "int"},
                              {"name": "scale", "type": "float", "default": 0.0},
                              {"name": "update_rule", "type": "string", "default": "gated_delta"}])",
            .shape = shape<linear_shape,
                           "query: T[b s _], key: T[b s _], value: T[b s _], "
                           "past: float[b _ _ _]?, decay: float?, beta: float? "
                           "; T = float">,
            .decompose = decompose<linear_decompose>,
            .cost = cost<linear_cost>,
            .ref = ref<linear_ref>,
            .sample = sample<linear_sample>});
constexpr tn_op kCausalConv = op_row(
    {.type = "CausalConvWithState",
     .since = 27,
     .attributes = R"([{"name": "activation", "type": "string", "default": "none"}])",
     .shape =
         shape<causal_shape, "x: T[n c s], w: T[c 1 k], bias: T[c]?, past: T[n c _]? ; T = float">,
     .decompose = decompose<causal_decompose>,
     .cost = cost<causal_cost>,
     .ref = ref<causal_ref>,
     .sample = sample<causal_sample>});

}  // namespace

TENON_OPS(linear_attention, &kLinear, &kCausalConv)

}  // namespace tenon::ops
