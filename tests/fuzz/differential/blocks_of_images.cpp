// SPDX-License-Identifier: Apache-2.0
// Blocks of networks for images: values are [images, channels, height, width].
#include "plot.hpp"

namespace tenon::fuzz {
namespace {

int64_t channels_of(Value x) {
  return x ? x.type().dims[1] : 1;
}

Value normalized(Plot& plot, Value x) {
  int64_t c = channels_of(x);
  Value scale = plot.weight({c}), bias = plot.weight({c});
  std::vector<Attr> training;
  if (plot.maybe()) training.push_back({"training_mode", 1});
  return plot.b.op("BatchNormalization", {x, scale, bias, plot.positive({c}), plot.positive({c})},
                   training);
}

Value convolved(Plot& plot, Value x, int64_t filters, int64_t size, int64_t stride, int64_t group) {
  Value weight = plot.weight({filters, channels_of(x) / group, size, size});
  std::vector<Value> inputs{x, weight};
  if (plot.maybe()) inputs.push_back(plot.weight({filters}));
  int64_t pad = size / 2;
  return plot.b.op("Conv", inputs,
                   {{"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                    {"strides", std::vector<int64_t>{stride, stride}},
                    {"group", group}});
}

void convolution(Plot& plot) {
  Value x = plot.take(4);
  bool is_depthwise = plot.random.one_in(3);
  int64_t c = channels_of(x), filters = is_depthwise ? c : plot.one_of({1, 4, 8, 16, 24, 32});
  Value y = convolved(plot, x, filters, plot.one_of({1, 1, 3, 3, 5}), plot.one_of({1, 1, 2}),
                      is_depthwise ? c : 1);
  if (plot.maybe()) y = normalized(plot, y);
  if (plot.maybe()) y = activated(plot, y);
  plot.give(y);
}

void normalization(Plot& plot) {
  Value y = normalized(plot, plot.take(4));
  plot.give(plot.maybe() ? activated(plot, y) : y);
}

void residual(Plot& plot) {
  Value x = plot.take(4);
  int64_t c = channels_of(x);
  Value y = convolved(plot, x, c, plot.one_of({1, 3}), 1, 1);
  if (plot.maybe()) y = normalized(plot, y);
  y = plot.maybe() ? plot.b.add(y, x) : plot.b.add(x, y);
  plot.give(plot.maybe() ? activated(plot, y) : y);
}

void sum_of_two(Plot& plot) {
  Value x = plot.take(4);
  Value y = plot.b.add(x, plot.like(x));
  plot.give(plot.maybe() ? activated(plot, y) : y);
}

void concatenation(Plot& plot) {
  Value x = plot.take(4);
  plot.give(plot.b.op("Concat", {x, plot.like(x)}, {{"axis", 1}}));
}

void halves(Plot& plot) {
  Value x = plot.take(4);
  if (channels_of(x) % 2) return plot.give(activated(plot, x));
  Node split = plot.b.node(
      {.type = "Split", .inputs = {x}, .attrs = {{"axis", 1}, {"num_outputs", 2}}, .n_outputs = 2});
  if (!split) return;
  plot.give(split.output(0));
  plot.give(split.output(1));
}

void pooling(Plot& plot) {
  Value x = plot.take(4);
  if (!x || x.type().dims[2] < 2 || x.type().dims[3] < 2) return;
  const std::vector<int64_t> two{2, 2};
  plot.give(plot.b.op(plot.maybe() ? "MaxPool" : "AveragePool", {x},
                      {{"kernel_shape", two}, {"strides", two}}));
}

// Squeeze and excitation (Hu et al., CVPR 2018).
void gate(Plot& plot) {
  Value x = plot.take(4);
  int64_t c = channels_of(x);
  Value squeezed = plot.b.op("GlobalAveragePool", {x});
  Value small = activated(plot, convolved(plot, squeezed, 4, 1, 1, 1));
  Value factor = plot.b.op("Sigmoid", {convolved(plot, small, c, 1, 1, 1)});
  plot.give(plot.b.mul(x, factor));
}

void group_norm(Plot& plot) {
  Value x = plot.take(4);
  int64_t c = channels_of(x);
  plot.give(plot.b.op("GroupNormalization", {x, plot.weight({c}), plot.weight({c})},
                      {{"num_groups", c % 2 ? 1 : 2}}));
}

void upsampling(Plot& plot) {
  Value x = plot.take(4);
  if (!x || x.type().dims[2] * x.type().dims[3] > 64) return;
  int64_t c = channels_of(x), filters = plot.one_of({4, 8, 16});
  plot.give(plot.b.op("ConvTranspose", {x, plot.weight({c, filters, 2, 2})},
                      {{"strides", std::vector<int64_t>{2, 2}}}));
}

void to_rows(Plot& plot) {
  Value x = plot.take(4);
  plot.give(plot.b.op("Flatten", {plot.b.op("GlobalAveragePool", {x})}));
}

void to_steps(Plot& plot) {
  Value x = plot.take(4);
  if (!x) return;
  const std::vector<int64_t> dims = x.type().dims;
  Value flat = plot.b.reshape(x, {dims[0], dims[1], dims[2] * dims[3]});
  plot.give(plot.b.transpose(flat, {0, 2, 1}));
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
      {"to rows", to_rows},
      {"to steps", to_steps},
  };
  return kBlocks;
}

}  // namespace tenon::fuzz
