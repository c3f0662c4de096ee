// SPDX-License-Identifier: Apache-2.0
// RNN, GRU (Cho et al. 2014) and LSTM (Hochreiter and Schmidhuber 1997; peepholes by Gers 2000).
#include "recurrent.hpp"
#include "recurrent_decompose.hpp"

namespace tenon::ops {
namespace {

using Numbers = std::vector<double>;

size_t at(int64_t i) {
  return static_cast<size_t>(i);
}

void rnn_cell(
    const Recurrent& r, const Direction& d, Node, const Numbers& x, Numbers& h, Numbers&) {
  Numbers next(h.size());
  for (int64_t i = 0; i < r.hidden; ++i)
    next[at(i)] = d.activations[0](r.clipped(x[at(i)] + r.recur(d, i, h)));
  h = next;
}

// Gates: z (update), r (reset), h (candidate).
void gru_cell(
    const Recurrent& r, const Direction& d, Node node, const Numbers& x, Numbers& h, Numbers&) {
  const Activation &f = d.activations[0], &g = d.activations[1];
  bool before = node.attr_int("linear_before_reset") != 0;
  Numbers update(h.size()), reset(h.size()), masked(h.size()), next(h.size());
  for (int64_t i = 0; i < r.hidden; ++i) {
    update[at(i)] = f(r.clipped(x[at(i)] + r.recur(d, i, h)));
    reset[at(i)] = f(r.clipped(x[at(r.hidden + i)] + r.recur(d, r.hidden + i, h)));
    masked[at(i)] = reset[at(i)] * h[at(i)];
  }
  for (int64_t i = 0; i < r.hidden; ++i) {
    int64_t row = 2 * r.hidden + i;
    double recurrent = before ? reset[at(i)] * r.recur(d, row, h) : r.recur(d, row, masked);
    double candidate = g(r.clipped(x[at(row)] + recurrent));
    next[at(i)] = (1 - update[at(i)]) * candidate + update[at(i)] * h[at(i)];
  }
  h = next;
}

// Gates: i (input), o (output), f (forget), c (cell); peepholes i, o, f.
void lstm_cell(
    const Recurrent& r, const Direction& d, Node node, const Numbers& x, Numbers& h, Numbers& c) {
  const Activation &f = d.activations[0], &g = d.activations[1], &out = d.activations[2];
  bool coupled = node.attr_int("input_forget") != 0;
  auto gate = [&](int64_t which, int64_t i) {
    int64_t row = which * r.hidden + i;
    return x[at(row)] + r.recur(d, row, h);
  };
  auto peep = [&](int64_t which, int64_t i, double cell) {
    return d.peepholes.empty() ? 0 : d.peepholes[at(which * r.hidden + i)] * cell;
  };
  Numbers next(h.size());
  for (int64_t i = 0; i < r.hidden; ++i) {
    double old = c[at(i)];
    double in = f(r.clipped(gate(0, i) + peep(0, i, old)));
    double forget = coupled ? 1 - in : f(r.clipped(gate(2, i) + peep(2, i, old)));
    c[at(i)] = forget * old + in * g(r.clipped(gate(3, i)));
    next[at(i)] = f(r.clipped(gate(1, i) + peep(1, i, c[at(i)]))) * out(c[at(i)]);
  }
  h = next;
}

// The same cells as nodes, for `decompose`.
void rnn_step(Step& s) {
  s.h = s.bent(0, s.b.add(s.x, s.b.op("MatMul", {s.h, s.r})));
}
void gru_step(Step& s) {
  Builder& b = s.b;
  auto columns = [&](int64_t from, int64_t to) {
    return b.op("Slice", {s.r, b.ints({from * s.hidden}), b.ints({to * s.hidden}), b.ints({1})});
  };
  Value both = b.op("MatMul", {s.h, columns(0, 2)});
  std::vector<Value> x = s.gates(s.x, 3), h = s.gates(both, 2);
  Value update = s.bent(0, b.add(x[0], h[0]));
  Value reset = s.bent(0, b.add(x[1], h[1]));
  Value recurrent;
  if (s.node.attr_int("linear_before_reset") != 0) {
    recurrent = b.op("MatMul", {s.h, columns(2, 3)});
    recurrent = b.mul(reset, s.extra ? b.add(recurrent, s.extra) : recurrent);
  } else {
    recurrent = b.op("MatMul", {b.mul(reset, s.h), columns(2, 3)});
  }
  Value candidate = s.bent(1, b.add(x[2], recurrent));
  s.h = b.add(candidate, b.mul(update, b.sub(s.h, candidate)));
}
void lstm_step(Step& s) {
  Builder& b = s.b;
  Value all = b.add(s.x, b.op("MatMul", {s.h, s.r}));
  std::vector<Value> x = s.gates(all, 4);
  std::vector<Value> peepholes = s.extra ? s.gates(s.extra, 3) : std::vector<Value>();
  auto gate = [&](size_t which, size_t peephole, Value cell) {
    return s.extra ? b.add(x[which], b.mul(peepholes[peephole], cell)) : x[which];
  };
  Value in = s.bent(0, gate(0, 0, s.c));
  Value forget = s.node.attr_int("input_forget") != 0 ? b.sub(b.number(1, in.dtype()), in)
                                                      : s.bent(0, gate(2, 2, s.c));
  s.c = b.add(b.mul(forget, s.c), b.mul(in, s.bent(1, x[3])));
  s.h = b.mul(s.bent(0, gate(1, 1, s.c)), applied(b, s.activations[2], s.c));
}

const std::vector<std::string> kRnnDefaults{"Tanh"}, kGruDefaults{"Sigmoid", "Tanh"},
    kLstmDefaults{"Sigmoid", "Tanh", "Tanh"};

Status rnn_ref(const Call& call) {
  return run_recurrent(call, 1, kRnnDefaults, rnn_cell);
}
Status gru_ref(const Call& call) {
  return run_recurrent(call, 3, kGruDefaults, gru_cell);
}
Status lstm_ref(const Call& call) {
  return run_recurrent(call, 4, kLstmDefaults, lstm_cell);
}
Result<std::vector<Value>> rnn_parts(EditView edit, Node node) {
  return recurrent_parts(edit, node, 1, kRnnDefaults, rnn_step);
}
Result<std::vector<Value>> gru_parts(EditView edit, Node node) {
  return recurrent_parts(edit, node, 3, kGruDefaults, gru_step);
}
Result<std::vector<Value>> lstm_parts(EditView edit, Node node) {
  return recurrent_parts(edit, node, 4, kLstmDefaults, lstm_step);
}
Result<Node> rnn_sample(EditView edit, uint64_t seed) {
  return recurrent_sample(edit, seed, "RNN", 1);
}
Result<Node> gru_sample(EditView edit, uint64_t seed) {
  return recurrent_sample(edit, seed, "GRU", 3);
}
Result<Node> lstm_sample(EditView edit, uint64_t seed) {
  return recurrent_sample(edit, seed, "LSTM", 4);
}

constexpr tn_op kRnn = op_row({.type = "RNN",
                               .since = 22,
                               .attributes = "[" TENON_RECURRENT_ATTRIBUTES "]",
                               .quant = "stored=1:1,2:1",
                               .shape = shape<recurrent_shape>,
                               .decompose = decompose<rnn_parts>,
                               .cost = cost<recurrent_cost>,
                               .ref = ref<rnn_ref>,
                               .sample = sample<rnn_sample>,
                               .cast = "cpu=low cuda=low",
                               .coupling = "recurrent w=1 r=2 bias=3 h=5 hidden=hidden_size"});
constexpr tn_op kGru =
    op_row({.type = "GRU",
            .since = 22,
            .attributes = "[" TENON_RECURRENT_ATTRIBUTES
                          R"(, {"name": "linear_before_reset", "type": "int", "default": 0}])",
            .quant = "stored=1:1,2:1",
            .shape = shape<recurrent_shape>,
            .decompose = decompose<gru_parts>,
            .cost = cost<recurrent_cost>,
            .ref = ref<gru_ref>,
            .sample = sample<gru_sample>,
            .cast = "cpu=low cuda=low",
            .coupling = "recurrent w=1 r=2 bias=3 h=5 hidden=hidden_size"});
constexpr tn_op kLstm =
    op_row({.type = "LSTM",
            .since = 22,
            .attributes = "[" TENON_RECURRENT_ATTRIBUTES
                          R"(, {"name": "input_forget", "type": "int",
                                                    "default": 0}])",
            .quant = "stored=1:1,2:1",
            .shape = shape<recurrent_shape>,
            .decompose = decompose<lstm_parts>,
            .cost = cost<recurrent_cost>,
            .ref = ref<lstm_ref>,
            .sample = sample<lstm_sample>,
            .cast = "cpu=low cuda=low",
            .coupling = "recurrent w=1 r=2 bias=3 h=5 c=6 peepholes=7 hidden=hidden_size"});

}  // namespace

TENON_OPS(recurrent_cells, &kRnn, &kGru, &kLstm)

}  // namespace tenon::ops
