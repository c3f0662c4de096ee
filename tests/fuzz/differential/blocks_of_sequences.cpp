// SPDX-License-Identifier: Apache-2.0
// Blocks of networks for sequences and rows: values are [sequences, steps, features] or [rows,
// features].
#include <cmath>

#include "plot.hpp"

namespace tenon::fuzz {
namespace {

int64_t features_of(Value x) {
  return x ? x.type().dims.back() : 1;
}

Value linear(Plot& plot, Value x, int64_t features) {
  if (!x) return {};
  int64_t from = features_of(x);
  if (x.type().rank() == 2 && plot.maybe())
    return plot.b.op("Gemm", {x, plot.weight({features, from}), plot.weight({features})},
                     {{"transB", 1}});
  Value y = plot.b.op("MatMul", {x, plot.weight({from, features})});
  return plot.maybe() ? plot.b.add(y, plot.weight({features})) : y;
}

Value layer_norm(Plot& plot, Value x) {
  int64_t d = features_of(x);
  std::vector<Value> inputs{x, plot.weight({d})};
  if (plot.maybe()) inputs.push_back(plot.weight({d}));
  return plot.b.op("LayerNormalization", inputs, {{"axis", -1}});
}

// x / sqrt(mean(x^2) + epsilon), in single nodes (Zhang and Sennrich, NeurIPS 2019).
Value rms_norm(Plot& plot, Value x) {
  Value square = plot.b.mul(x, x);
  Value mean = plot.b.op("ReduceMean", {square, plot.b.ints({-1})});
  Value root = plot.b.op("Sqrt", {plot.b.add(mean, plot.b.number(1e-3, TN_F32))});
  return plot.b.mul(plot.b.div(x, root), plot.weight({features_of(x)}));
}

// As exporters write it: 0.5 x (1 + erf(x / sqrt(2))).
Value gelu(Plot& plot, Value x) {
  Value erf = plot.b.op("Erf", {plot.b.div(x, plot.b.number(std::sqrt(2.0), TN_F32))});
  Value half = plot.b.mul(x, plot.b.number(0.5, TN_F32));
  return plot.b.mul(half, plot.b.add(erf, plot.b.number(1, TN_F32)));
}

void product(Plot& plot) {
  Value x = plot.take(plot.maybe() ? 3 : 2);
  Value y = linear(plot, x, plot.one_of({1, 8, 16, 24, 32, 64}));
  plot.give(plot.maybe() ? activated(plot, y) : y);
}

void feed_forward(Plot& plot) {
  Value x = plot.take(3);
  Value wide = linear(plot, x, plot.one_of({16, 48, 64}));
  Value y = linear(plot, plot.maybe() ? gelu(plot, wide) : activated(plot, wide), features_of(x));
  plot.give(plot.maybe() ? plot.b.add(y, x) : layer_norm(plot, plot.b.add(x, y)));
}

void norm_of_layer(Plot& plot) {
  Value x = plot.take(plot.maybe() ? 3 : 2);
  plot.give(plot.maybe() ? layer_norm(plot, x) : rms_norm(plot, x));
}

// [sequences, steps, features] as [sequences, heads, steps, features of a head].
Value heads_of(Plot& plot, Value x, int64_t heads) {
  if (!x) return {};
  const std::vector<int64_t> dims = x.type().dims;
  return plot.b.transpose(plot.b.reshape(x, {dims[0], dims[1], heads, dims[2] / heads}),
                          {0, 2, 1, 3});
}

// softmax(q k^T / sqrt(d) + mask) v in single nodes (Vaswani et al., NeurIPS 2017).
void attention(Plot& plot) {
  Value x = plot.take(3);
  if (!x) return;
  const std::vector<int64_t> dims = x.type().dims;
  int64_t heads = plot.one_of({1, 2, 4}), size = plot.one_of({4, 8, 16, 20}), d = heads * size;
  Value q = heads_of(plot, linear(plot, x, d), heads),
        k = heads_of(plot, linear(plot, x, d), heads),
        v = heads_of(plot, linear(plot, x, d), heads);
  Value factor = plot.b.number(1 / std::sqrt(static_cast<double>(size)), TN_F32);
  bool is_early = plot.maybe();
  Value scores = plot.b.op(
      "MatMul", {is_early ? plot.b.mul(q, factor) : q, plot.b.transpose(k, {0, 1, 3, 2})});
  if (!is_early) scores = plot.b.mul(scores, factor);
  if (plot.maybe()) scores = plot.b.add(scores, plot.input(Type(TN_F32, {dims[0], 1, 1, dims[1]})));
  Value weights = plot.b.op("Softmax", {scores}, {{"axis", -1}});
  Value context = plot.b.transpose(plot.b.op("MatMul", {weights, v}), {0, 2, 1, 3});
  Value y = linear(plot, plot.b.reshape(context, {dims[0], dims[1], d}), dims[2]);
  plot.give(plot.maybe() ? plot.b.add(x, y) : y);
}

void sum_of_two(Plot& plot) {
  Value x = plot.take(plot.maybe() ? 3 : 2);
  plot.give(plot.maybe() ? plot.b.add(x, plot.like(x)) : plot.b.mul(x, plot.like(x)));
}

// A product that ends in a product of its halves (Shazeer, 2020).
void gated(Plot& plot) {
  Value x = plot.take(3);
  int64_t wide = plot.one_of({16, 24, 48});
  Value open = activated(plot, linear(plot, x, wide));
  plot.give(linear(plot, plot.b.mul(open, linear(plot, x, wide)), features_of(x)));
}

void recurrent(Plot& plot) {
  Value x = plot.take(3);
  int64_t d = features_of(x), hidden = plot.one_of({4, 8, 20});
  bool is_lstm = plot.maybe();
  int64_t gates = is_lstm ? 4 : 3;
  Value steps_first = plot.b.transpose(x, {1, 0, 2});
  Value y =
      plot.b.op(is_lstm ? "LSTM" : "GRU",
                {steps_first, plot.weight({1, gates * hidden, d}),
                 plot.weight({1, gates * hidden, hidden}), plot.weight({1, 2 * gates * hidden})},
                {{"hidden_size", hidden}});
  if (!y) return;
  plot.give(plot.b.transpose(plot.b.op("Squeeze", {y, plot.b.ints({1})}), {1, 0, 2}));
}

void mean_of_steps(Plot& plot) {
  plot.give(plot.b.op("ReduceMean", {plot.take(3), plot.b.ints({1})}, {{"keepdims", 0}}));
}

void distribution(Plot& plot) {
  Value x = plot.take(plot.maybe() ? 3 : 2);
  plot.give(plot.b.op(plot.maybe() ? "Softmax" : "LogSoftmax", {x}, {{"axis", -1}}));
}

// Rows of one product of computed matrices: similarities, as contrastive losses have them.
void similarities(Plot& plot) {
  Value x = plot.take(2);
  plot.give(plot.b.op("MatMul", {x, plot.b.transpose(plot.like(x), {1, 0})}));
}

}  // namespace

const std::vector<Block>& blocks_of_sequences() {
  static const std::vector<Block> kBlocks{
      {"product", product},           {"feed-forward", feed_forward},
      {"norm", norm_of_layer},        {"attention", attention},
      {"sum of two", sum_of_two},     {"gated", gated},
      {"recurrent", recurrent},       {"mean of steps", mean_of_steps},
      {"distribution", distribution}, {"similarities", similarities},
  };
  return kBlocks;
}

}  // namespace tenon::fuzz
