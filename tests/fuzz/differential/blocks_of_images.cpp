// SPDX-License-Identifier: Apache-2.0
// Blocks of networks for images: values are [images, channels, height, width].
#include "network_builder.hpp"

namespace tenon::fuzz {
namespace {

int64_t channels_of(Value x) {
  return x ? x.type().dims[1] : 1;
}

Value normalized(NetworkBuilder& net, Value x) {
  int64_t c = channels_of(x);
  Value scale = net.weight({c}), bias = net.weight({c});
  std::vector<Attr> training;
  if (net.maybe()) training.push_back({"training_mode", 1});
  return net.b.op("BatchNormalization", {x, scale, bias, net.positive({c}), net.positive({c})},
                  training);
}

Value convolved(
    NetworkBuilder& net, Value x, int64_t filters, int64_t size, int64_t stride, int64_t group) {
  Value weight = net.weight({filters, channels_of(x) / group, size, size});
  std::vector<Value> inputs{x, weight};
  if (net.maybe()) inputs.push_back(net.weight({filters}));
  int64_t pad = size / 2;
  return net.b.op("Conv", inputs,
                  {{"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                   {"strides", std::vector<int64_t>{stride, stride}},
                   {"group", group}});
}

void convolution(NetworkBuilder& net) {
  Value x = net.take(4);
  bool is_depthwise = net.random.one_in(3);
  int64_t c = channels_of(x), filters = is_depthwise ? c : net.one_of({1, 4, 8, 16, 24, 32});
  Value y = convolved(net, x, filters, net.one_of({1, 1, 3, 3, 5}), net.one_of({1, 1, 2}),
                      is_depthwise ? c : 1);
  if (net.maybe()) y = normalized(net, y);
  if (net.maybe()) y = activated(net, y);
  net.give(y);
}

void normalization(NetworkBuilder& net) {
  Value y = normalized(net, net.take(4));
  net.give(net.maybe() ? activated(net, y) : y);
}

void residual(NetworkBuilder& net) {
  Value x = net.take(4);
  int64_t c = channels_of(x);
  Value y = convolved(net, x, c, net.one_of({1, 3}), 1, 1);
  if (net.maybe()) y = normalized(net, y);
  y = net.maybe() ? net.b.add(y, x) : net.b.add(x, y);
  net.give(net.maybe() ? activated(net, y) : y);
}

void sum_of_two(NetworkBuilder& net) {
  Value x = net.take(4);
  Value y = net.b.add(x, net.like(x));
  net.give(net.maybe() ? activated(net, y) : y);
}

void concatenation(NetworkBuilder& net) {
  Value x = net.take(4);
  net.give(net.b.op("Concat", {x, net.like(x)}, {{"axis", 1}}));
}

void halves(NetworkBuilder& net) {
  Value x = net.take(4);
  if (channels_of(x) % 2) return net.give(activated(net, x));
  Node split = net.b.node(
      {.type = "Split", .inputs = {x}, .attrs = {{"axis", 1}, {"num_outputs", 2}}, .n_outputs = 2});
  if (!split) return;
  net.give(split.output(0));
  net.give(split.output(1));
}

void pooling(NetworkBuilder& net) {
  Value x = net.take(4);
  if (!x || x.type().dims[2] < 2 || x.type().dims[3] < 2) return;
  const std::vector<int64_t> two{2, 2};
  net.give(net.b.op(net.maybe() ? "MaxPool" : "AveragePool", {x},
                    {{"kernel_shape", two}, {"strides", two}}));
}

// Squeeze and excitation (Hu et al., CVPR 2018).
void gate(NetworkBuilder& net) {
  Value x = net.take(4);
  int64_t c = channels_of(x);
  Value squeezed = net.b.op("GlobalAveragePool", {x});
  Value small = activated(net, convolved(net, squeezed, 4, 1, 1, 1));
  Value factor = net.b.op("Sigmoid", {convolved(net, small, c, 1, 1, 1)});
  net.give(net.b.mul(x, factor));
}

void group_norm(NetworkBuilder& net) {
  Value x = net.take(4);
  int64_t c = channels_of(x);
  net.give(net.b.op("GroupNormalization", {x, net.weight({c}), net.weight({c})},
                    {{"num_groups", c % 2 ? 1 : 2}}));
}

void upsampling(NetworkBuilder& net) {
  Value x = net.take(4);
  if (!x || x.type().dims[2] * x.type().dims[3] > 64) return;
  int64_t c = channels_of(x), filters = net.one_of({4, 8, 16});
  net.give(net.b.op("ConvTranspose", {x, net.weight({c, filters, 2, 2})},
                    {{"strides", std::vector<int64_t>{2, 2}}}));
}

// Windows side by side, or overlapping by half, without padding, and channels of any multiple of 8.
void patches(NetworkBuilder& net) {
  Value x = net.take(4);
  const int64_t size = net.one_of({2, 2, 4}), stride = net.maybe() ? size : (size + 1) / 2;
  if (!x || x.type().dims[2] < size || x.type().dims[3] < size) return;
  const int64_t channels = net.one_of({8, 16, 24, 40, 48, 80});
  if (net.maybe()) x = convolved(net, x, channels, 1, 1, 1);
  Value weight = net.weight({net.one_of({8, 16, 32}), channels_of(x), size, size});
  net.give(net.b.op("Conv", {x, weight}, {{"strides", std::vector<int64_t>{stride, stride}}}));
}

void to_rows(NetworkBuilder& net) {
  Value x = net.take(4);
  net.give(net.b.op("Flatten", {net.b.op("GlobalAveragePool", {x})}));
}

void to_steps(NetworkBuilder& net) {
  Value x = net.take(4);
  if (!x) return;
  const std::vector<int64_t> dims = x.type().dims;
  Value flat = net.b.reshape(x, {dims[0], dims[1], dims[2] * dims[3]});
  net.give(net.b.transpose(flat, {0, 2, 1}));
}

}  // namespace

const std::vector<Block>& blocks_of_images() {
  static const std::vector<Block> kBlocks{
      {"convolution", convolution},
      {"normalization", normalization},
      {"residual", residual},
      {"sum of two", sum_of_two},
      {"concatenation", concatenation},
      {"halves", halves},
      {"pooling", pooling},
      {"gate", gate},
      {"group norm", group_norm},
      {"upsampling", upsampling},
      {"patches", patches},
      {"to rows", to_rows},
      {"to steps", to_steps},
  };
  return kBlocks;
}

}  // namespace tenon::fuzz
