// SPDX-License-Identifier: Apache-2.0
// RNN, GRU (Cho et al. 2014) and LSTM (Hochreiter and Schmidhuber 1997; peepholes by Gers 2000).
#include "recurrent.hpp"

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

Status rnn_ref(const Call& call) {
  return run_recurrent(call, 1, {"Tanh"}, rnn_cell);
}
Status gru_ref(const Call& call) {
  return run_recurrent(call, 3, {"Sigmoid", "Tanh"}, gru_cell);
}
Status lstm_ref(const Call& call) {
  return run_recurrent(call, 4, {"Sigmoid", "Tanh", "Tanh"}, lstm_cell);
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
                               .shape = shape<recurrent_shape>,
                               .cost = cost<recurrent_cost>,
                               .ref = ref<rnn_ref>,
                               .sample = sample<rnn_sample>,
                               .cast = "cpu=low cuda=low"});
constexpr tn_op kGru =
    op_row({.type = "GRU",
            .since = 22,
            .attributes = "[" TENON_RECURRENT_ATTRIBUTES
                          R"(, {"name": "linear_before_reset", "type": "int", "default": 0}])",
            .shape = shape<recurrent_shape>,
            .cost = cost<recurrent_cost>,
            .ref = ref<gru_ref>,
            .sample = sample<gru_sample>,
            .cast = "cpu=low cuda=low"});
constexpr tn_op kLstm = op_row({.type = "LSTM",
                                .since = 22,
                                .attributes = "[" TENON_RECURRENT_ATTRIBUTES
                                              R"(, {"name": "input_forget", "type": "int",
                                                    "default": 0}])",
                                .shape = shape<recurrent_shape>,
                                .cost = cost<recurrent_cost>,
                                .ref = ref<lstm_ref>,
                                .sample = sample<lstm_sample>,
                                .cast = "cpu=low cuda=low"});

}  // namespace

TENON_OPS(recurrent_cells, &kRnn, &kGru, &kLstm)

}  // namespace tenon::ops
