// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLSTM of ONNX Runtime's domain: an LSTM whose weights are stored in 8 bits.
//
// ONNX Runtime rounds the input and the state to 8 bits too, by ranges that depend on how it cuts
// the batch among its threads. That rounding is no part of what the operator says, and is left out.
#include "tenon/sdk/alike.hpp"

#include "fused.hpp"
#include "recurrent.hpp"

namespace tenon::ops {
namespace {

enum Input : uint64_t {
  kX,
  kW,
  kR,
  kBias,
  kLengths,
  kH,
  kC,
  kPeepholes,
  kWScale,
  kWZero,
  kRScale,
  kRZero
};

Status lstm_shape(EditView edit, Node node) {
  Type x = node.input(kX).type(), r = node.input(kR).type();
  if (!x.ranked || !r.ranked) {
    for (uint64_t i = 0; i < 3; ++i)
      TN_CHECK(set_output(edit, node, i, unranked(x.dtype)));
    return {};
  }
  const Dim steps = dims_of(x)[0], batch = dims_of(x)[1], n = dims_of(r)[0], hidden = dims_of(r)[1];
  if (int64_t said = node.attr_int("hidden_size"); said > 0 && hidden.known() && !hidden.is(said))
    return invalid(cat("hidden_size: expected ", *hidden.value, ", as R has, got ", said));
  TN_CHECK(set_output(edit, node, 0, x.dtype, {steps, n, batch, hidden}));
  TN_CHECK(set_output(edit, node, 1, x.dtype, {n, batch, hidden}));
  return set_output(edit, node, 2, x.dtype, {n, batch, hidden});
}

// [directions, inputs, 4*hidden] in 8 bits as [directions, 4*hidden, inputs]; the scale is one for
// each direction, or for each of its columns.
Value weights(Builder& b, Node node, uint64_t values, uint64_t scale, uint64_t zero) {
  auto spread = [&](Value v) {
    const bool is_by_column = b.ranked(v, node.type()).rank() == 2;
    return b.op("Unsqueeze", {v, is_by_column ? b.ints({1}) : b.ints({1, 2})});
  };
  const uint32_t dtype = node.input(kX).dtype();
  Value off = b.sub(b.cast(node.input(values), dtype), b.cast(spread(node.input(zero)), dtype));
  return b.transpose(b.mul(off, spread(node.input(scale))), {0, 2, 1});
}
Result<std::vector<Value>> lstm_decompose(EditView edit, Node node) {
  Builder b(edit);
  Type r = b.fixed(node.input(kR), node.type());
  TN_CHECK(b.status());
  std::vector<Value> inputs{node.input(kX), weights(b, node, kW, kWScale, kWZero),
                            weights(b, node, kR, kRScale, kRZero)};
  for (uint64_t i = kBias; i <= kPeepholes; ++i)
    inputs.push_back(node.input(i));
  while (!inputs.back())
    inputs.pop_back();
  Node lstm = b.node({.type = "LSTM",
                      .inputs = inputs,
                      .attrs = attributes_of(node, {{"hidden_size", r.dims[1]}}),
                      .n_outputs = 3});
  TN_CHECK(b.status());
  std::vector<Value> out{lstm.output(0), lstm.output(1), lstm.output(2)};
  out.resize(node.n_outputs());
  return out;
}

Result<Node> lstm_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  const int64_t directions = random.integer(1, 2), hidden = random.integer(1, 3),
                input = random.integer(1, 3), gates = 4 * hidden;
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 3), 2, input}));
  TN_TRY(w, random.input(TN_I8, {directions, input, gates}));
  TN_TRY(r, random.input(TN_I8, {directions, hidden, gates}));
  TN_TRY(bias, random.input(TN_F32, {directions, 2 * gates}));
  const std::vector<int64_t> each =
      random.coin() ? std::vector{directions} : std::vector{directions, gates};
  const auto n = static_cast<size_t>(element_count(each));
  TN_TRY(scale, edit.constant<float>(TN_F32, each, std::vector<float>(n, 0.25F)));
  TN_TRY(zero, edit.constant<int8_t>(TN_I8, each, std::vector<int8_t>(n, 1)));
  return edit.add({.type = "DynamicQuantizeLSTM",
                   .inputs = {x, w, r, bias, {}, {}, {}, {}, scale, zero, scale, zero},
                   .attrs = {{"hidden_size", hidden},
                             {"direction", directions == 2 ? "bidirectional" : "reverse"}},
                   .n_outputs = 3,
                   .domain = fused::kDomain});
}

constexpr tn_op kLstm = op_row(
    {.type = "DynamicQuantizeLSTM",
     .domain = fused::kDomain,
     .attributes = R"([{"name": "activation_alpha", "type": "floats"},
                       {"name": "activation_beta", "type": "floats"},
                       {"name": "activations", "type": "strings"},
                       {"name": "clip", "type": "float"},
                       {"name": "direction", "type": "string", "default": "forward"},
                       {"name": "hidden_size", "type": "int"},
                       {"name": "input_forget", "type": "int", "default": 0}])",
     .shape = shape<lstm_shape,
                    "x: T[s b i], w: U[n i g], r: U[n h g], bias: T[n _]?, lengths: i32[b]?, "
                    "h: T[n b h]?, c: T[n b h]?, peepholes: T[n _]?, w_scale: T[n q..], "
                    "w_zero: U[n q..], r_scale: T[n t..], r_zero: U[n t..] ; "
                    "T = f32, U = i8|u8">,
     .decompose = decompose<lstm_decompose>,
     .sample = sample<lstm_sample>});

}  // namespace

TENON_OPS(dynamic_lstm, &kLstm)

}  // namespace tenon::ops
