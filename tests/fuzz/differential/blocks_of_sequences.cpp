// SPDX-License-Identifier: Apache-2.0
// Blocks of networks for sequences and rows: values are [sequences, steps, features] or [rows,
// features].
#include <cmath>

#include "network_builder.hpp"

namespace tenon::fuzz {
namespace {

int64_t features_of(Value x) {
  return x ? x.type().dims.back() : 1;
}

Value linear(NetworkBuilder& net, Value x, int64_t features) {
  if (!x) return {};
  int64_t from = features_of(x);
  if (x.type().rank() == 2 && net.maybe())
    return net.b.op("Gemm", {x, net.weight({features, from}), net.weight({features})},
                    {{"transB", 1}});
  Value y = net.b.op("MatMul", {x, net.weight({from, features})});
  return net.maybe() ? net.b.add(y, net.weight({features})) : y;
}

Value layer_norm(NetworkBuilder& net, Value x) {
  int64_t d = features_of(x);
  std::vector<Value> inputs{x, net.weight({d})};
  if (net.maybe()) inputs.push_back(net.weight({d}));
  return net.b.op("LayerNormalization", inputs, {{"axis", -1}});
}

// x / sqrt(mean(x^2) + epsilon), in single nodes (Zhang and Sennrich, NeurIPS 2019).
Value rms_norm(NetworkBuilder& net, Value x) {
  Value square = net.b.mul(x, x);
  Value mean = net.b.op("ReduceMean", {square, net.b.ints({-1})});
  Value root = net.b.op("Sqrt", {net.b.add(mean, net.b.number(1e-3, TN_F32))});
  return net.b.mul(net.b.div(x, root), net.weight({features_of(x)}));
}

// As exporters write it: 0.5 x (1 + erf(x / sqrt(2))).
Value gelu(NetworkBuilder& net, Value x) {
  Value erf = net.b.op("Erf", {net.b.div(x, net.b.number(std::sqrt(2.0), TN_F32))});
  Value half = net.b.mul(x, net.b.number(0.5, TN_F32));
  return net.b.mul(half, net.b.add(erf, net.b.number(1, TN_F32)));
}

void product(NetworkBuilder& net) {
  Value x = net.take(net.maybe() ? 3 : 2);
  Value y = linear(net, x, net.one_of({1, 8, 16, 24, 32, 64}));
  net.give(net.maybe() ? activated(net, y) : y);
}

void feed_forward(NetworkBuilder& net) {
  Value x = net.take(3);
  Value wide = linear(net, x, net.one_of({16, 48, 64}));
  Value y = linear(net, net.maybe() ? gelu(net, wide) : activated(net, wide), features_of(x));
  net.give(net.maybe() ? net.b.add(y, x) : layer_norm(net, net.b.add(x, y)));
}

void norm_of_layer(NetworkBuilder& net) {
  Value x = net.take(net.maybe() ? 3 : 2);
  net.give(net.maybe() ? layer_norm(net, x) : rms_norm(net, x));
}

// [sequences, steps, features] as [sequences, heads, steps, features of a head].
Value heads_of(NetworkBuilder& net, Value x, int64_t heads) {
  if (!x) return {};
  const std::vector<int64_t> dims = x.type().dims;
  return net.b.transpose(net.b.reshape(x, {dims[0], dims[1], heads, dims[2] / heads}),
                         {0, 2, 1, 3});
}

// softmax(q k^T / sqrt(d) + mask) v in single nodes (Vaswani et al., NeurIPS 2017).
void attention(NetworkBuilder& net) {
  Value x = net.take(3);
  if (!x) return;
  const std::vector<int64_t> dims = x.type().dims;
  int64_t heads = net.one_of({1, 2, 4}), size = net.one_of({4, 8, 16, 20}), d = heads * size;
  Value q = heads_of(net, linear(net, x, d), heads), k = heads_of(net, linear(net, x, d), heads),
        v = heads_of(net, linear(net, x, d), heads);
  Value factor = net.b.number(1 / std::sqrt(static_cast<double>(size)), TN_F32);
  bool is_early = net.maybe();
  Value scores =
      net.b.op("MatMul", {is_early ? net.b.mul(q, factor) : q, net.b.transpose(k, {0, 1, 3, 2})});
  if (!is_early) scores = net.b.mul(scores, factor);
  if (net.maybe()) scores = net.b.add(scores, net.input(Type(TN_F32, {dims[0], 1, 1, dims[1]})));
  Value weights = net.b.op("Softmax", {scores}, {{"axis", -1}});
  Value context = net.b.transpose(net.b.op("MatMul", {weights, v}), {0, 2, 1, 3});
  Value y = linear(net, net.b.reshape(context, {dims[0], dims[1], d}), dims[2]);
  net.give(net.maybe() ? net.b.add(x, y) : y);
}

void sum_of_two(NetworkBuilder& net) {
  Value x = net.take(net.maybe() ? 3 : 2);
  net.give(net.maybe() ? net.b.add(x, net.like(x)) : net.b.mul(x, net.like(x)));
}

// A product that ends in a product of its halves (Shazeer, 2020).
void gated(NetworkBuilder& net) {
  Value x = net.take(3);
  int64_t wide = net.one_of({16, 24, 48});
  Value open = activated(net, linear(net, x, wide));
  net.give(linear(net, net.b.mul(open, linear(net, x, wide)), features_of(x)));
}

void recurrent(NetworkBuilder& net) {
  Value x = net.take(3);
  int64_t d = features_of(x), hidden = net.one_of({4, 8, 20});
  bool is_lstm = net.maybe();
  int64_t gates = is_lstm ? 4 : 3;
  Value steps_first = net.b.transpose(x, {1, 0, 2});
  Value y = net.b.op(is_lstm ? "LSTM" : "GRU",
                     {steps_first, net.weight({1, gates * hidden, d}),
                      net.weight({1, gates * hidden, hidden}), net.weight({1, 2 * gates * hidden})},
                     {{"hidden_size", hidden}});
  if (!y) return;
  net.give(net.b.transpose(net.b.op("Squeeze", {y, net.b.ints({1})}), {1, 0, 2}));
}

void mean_of_steps(NetworkBuilder& net) {
  net.give(net.b.op("ReduceMean", {net.take(3), net.b.ints({1})}, {{"keepdims", 0}}));
}

void distribution(NetworkBuilder& net) {
  Value x = net.take(net.maybe() ? 3 : 2);
  net.give(net.b.op(net.maybe() ? "Softmax" : "LogSoftmax", {x}, {{"axis", -1}}));
}

// Rows of one product of computed matrices: similarities, as contrastive losses have them.
void similarities(NetworkBuilder& net) {
  Value x = net.take(2);
  net.give(net.b.op("MatMul", {x, net.b.transpose(net.like(x), {1, 0})}));
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
