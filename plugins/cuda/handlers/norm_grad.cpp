// SPDX-License-Identifier: Apache-2.0
// BatchNormalization over its batch, and the gradients of it and of LayerNormalization.
#include <cstddef>
#include <limits>

#include "../kernels/channel_args.h"
#include "channels.hpp"
#include "launch_sizes.hpp"

namespace tenon::cuda {
namespace {

// Where x lies with channels last, so does all that has its shape.
Channels channels_of(const Lowering& lowering, int x) {
  const ValueInfo& info = lowering.value(x);
  Channels out;
  out.channels = static_cast<uint64_t>(info.dims[1]);
  out.count = static_cast<uint64_t>(info.count()) / out.channels;
  out.inner = lowering.lies_channels_last(x) ? 1 : out.count / static_cast<uint64_t>(info.dims[0]);
  return out;
}

int scratch_floats(Lowering& lowering, const NodeInfo& node, const char* what, uint64_t count) {
  return lowering.scratch(cat(node.name, " ", what), count * sizeof(float));
}

std::string refuse_floats(const Imported& graph, const NodeInfo& node, size_t first, size_t last) {
  for (size_t i = first; i <= last; ++i) {
    if (node.input(i) == kNone) return "an absent operand";
    if (graph.value(node.input(i)).dtype != TN_F32) return "scales that are not float32";
  }
  return {};
}

std::string refuse_batch(const Imported& graph, int x) {
  const ValueInfo& info = graph.value(x);
  if (float_suffix(info.dtype).empty()) return cat("no kernels for ", dtype_name(info.dtype));
  if (info.dims.size() < 2) return "no axis of channels";
  if (info.count() > std::numeric_limits<int32_t>::max()) return "more than 2^31 elements";
  return {};
}

struct Spread {  // where the running statistics lie; -1: nowhere
  int mean_before = -1, variance_before = -1, mean_after = -1, variance_after = -1;
};

// Mean and reciprocal deviation of each channel; kept for the gradient.
Lowering::Statistics add_statistics(
    Lowering& lowering, const NodeInfo& node, int x, int x_buffer, const Spread& running) {
  Channels channels = channels_of(lowering, x);
  uint32_t dtype = lowering.value(x).dtype;
  double each = 1 / static_cast<double>(channels.count);
  Lowering::Statistics out;
  out.epsilon = node.source.attr_float("epsilon", 1e-5);
  out.mean = scratch_floats(lowering, node, "mean", channels.channels);
  out.inv_std = scratch_floats(lowering, node, "deviation", channels.channels);
  ChannelReads reads;
  reads.x = x_buffer;
  ChannelSums sums = add_channel_sums(lowering, node, "values", dtype, channels, reads);
  add_channel_totals(lowering, node, TN_F32, channels, sums, each, out.mean, -1);
  reads.mean = out.mean;
  sums = add_channel_sums(lowering, node, "squares", dtype, channels, reads);
  ChannelSpreadArgs args{};
  args.channels = channels.channels;
  args.pieces = sums.pieces;
  args.factor = static_cast<float>(each);
  args.epsilon = static_cast<float>(out.epsilon);
  args.momentum = static_cast<float>(node.source.attr_float("momentum", 0.9));
  Launch made = lowering.launch("channel_spread", args);
  made.is_elementwise = true;  // running statistics
  made.block = 128;
  made.grid = static_cast<uint32_t>((args.channels + 127) / 128);
  made.patches = {{offsetof(ChannelSpreadArgs, partial), sums.partial, 0},
                  {offsetof(ChannelSpreadArgs, mean), out.mean, 0}};
  auto point = [&](size_t at, int buffer) {
    if (buffer >= 0) made.patches.push_back({static_cast<uint32_t>(at), buffer, 0});
  };
  point(offsetof(ChannelSpreadArgs, mean_before), running.mean_before);
  point(offsetof(ChannelSpreadArgs, variance_before), running.variance_before);
  size_t n_reads = made.patches.size();
  point(offsetof(ChannelSpreadArgs, inv_std), out.inv_std);
  point(offsetof(ChannelSpreadArgs, mean_after), running.mean_after);
  point(offsetof(ChannelSpreadArgs, variance_after), running.variance_after);
  lowering.add_launch(node, std::move(made), n_reads, static_cast<double>(args.channels));
  lowering.keep_statistics(x, out);
  return out;
}

struct BatchNormReads {
  int x = -1, dy = -1, scale = -1, bias = -1, dscale = -1, dbias = -1;
};

void add_batch_norm(Lowering& lowering,
                    const NodeInfo& node,
                    int x,
                    const Channels& channels,
                    const BatchNormReads& reads,
                    const Lowering::Statistics& statistics,
                    int y) {
  BatchNormArgs args{};
  args.count = channels.count * channels.channels;
  args.channels = static_cast<unsigned>(channels.channels);
  args.inner = static_cast<unsigned>(channels.inner);
  args.factor = 1 / static_cast<float>(channels.count);
  bool in_vectors = args.count % 4 == 0;
  Launch made = lowering.launch(cat(in_vectors ? "batch_norm_vectors_" : "batch_norm_",
                                    float_suffix(lowering.value(x).dtype)),
                                args);
  made.block = kElementBlock;
  made.grid = element_grid(in_vectors ? args.count / 4 : args.count);
  auto point = [&](size_t at, int buffer) {
    if (buffer >= 0) made.patches.push_back({static_cast<uint32_t>(at), buffer, 0});
  };
  point(offsetof(BatchNormArgs, x), reads.x);
  point(offsetof(BatchNormArgs, dy), reads.dy);
  point(offsetof(BatchNormArgs, mean), statistics.mean);
  point(offsetof(BatchNormArgs, inv_std), statistics.inv_std);
  point(offsetof(BatchNormArgs, scale), reads.scale);
  point(offsetof(BatchNormArgs, bias), reads.bias);
  point(offsetof(BatchNormArgs, dscale), reads.dscale);
  point(offsetof(BatchNormArgs, dbias), reads.dbias);
  size_t n_reads = made.patches.size();
  point(offsetof(BatchNormArgs, y), y);
  lowering.add_launch(node, std::move(made), n_reads, 8 * static_cast<double>(args.count));
}

}  // namespace

// Inference is taken apart: a group of pointwise nodes does it.
std::string refuse_batch_norm(const Imported& graph, const NodeInfo& node) {
  if (node.source.attr_int("training_mode", 0) == 0) return "given statistics";
  if (std::string why = refuse_floats(graph, node, 1, 4); !why.empty()) return why;
  return refuse_batch(graph, node.inputs[0]);
}

void lower_batch_norm(Lowering& lowering, const NodeInfo& node) {
  int x = node.inputs[0];
  bool last = lowering.lies_channels_last(x);
  BatchNormReads reads;
  reads.x = last ? lowering.channels_last(x) : lowering.buffer(x);
  reads.scale = lowering.buffer(node.inputs[1]);
  reads.bias = lowering.buffer(node.inputs[2]);
  Spread running;
  if (node.output(1) != kNone) {
    running.mean_before = lowering.buffer(node.inputs[3]);
    running.mean_after = lowering.buffer(node.output(1));
  }
  if (node.output(2) != kNone) {
    running.variance_before = lowering.buffer(node.inputs[4]);
    running.variance_after = lowering.buffer(node.output(2));
  }
  Channels channels = channels_of(lowering, x);
  Lowering::Statistics statistics = add_statistics(lowering, node, x, reads.x, running);
  int y = last ? lowering.new_channels_last(node.outputs[0]) : lowering.buffer(node.outputs[0]);
  add_batch_norm(lowering, node, x, channels, reads, statistics, y);
}

// tenon:BatchNormGrad(dy, x, scale)
std::string refuse_batch_norm_grad(const Imported& graph, const NodeInfo& node) {
  if (std::string why = refuse_floats(graph, node, 2, 2); !why.empty()) return why;
  if (graph.value(node.inputs[0]).dtype != graph.value(node.inputs[1]).dtype)
    return "operands of two types";
  return refuse_batch(graph, node.inputs[1]);
}

void lower_batch_norm_grad(Lowering& lowering, const NodeInfo& node) {
  int x = node.inputs[1];
  uint32_t dtype = lowering.value(x).dtype;
  bool last = lowering.lies_channels_last(x);
  auto read = [&](int value) {
    return last ? lowering.channels_last(value) : lowering.buffer(value);
  };
  BatchNormReads reads;
  reads.dy = read(node.inputs[0]);
  reads.x = read(x);
  reads.scale = lowering.buffer(node.inputs[2]);
  Channels channels = channels_of(lowering, x);
  const Lowering::Statistics* known =
      lowering.statistics(x, node.source.attr_float("epsilon", 1e-5));
  Lowering::Statistics statistics = known ? *known : add_statistics(lowering, node, x, reads.x, {});
  ChannelSums sums = add_channel_sums(lowering, node, "gradients", dtype, channels,
                                      {reads.x, reads.dy, statistics.mean, statistics.inv_std});
  auto place = [&](size_t output, const char* what) {
    return node.output(output) != kNone ? lowering.buffer(node.output(output))
                                        : scratch_floats(lowering, node, what, channels.channels);
  };
  reads.dscale = place(1, "dscale");
  reads.dbias = place(2, "dbias");
  add_channel_totals(lowering, node, TN_F32, channels, sums, 1, reads.dbias, reads.dscale);
  int dx = last ? lowering.new_channels_last(node.outputs[0]) : lowering.buffer(node.outputs[0]);
  add_batch_norm(lowering, node, x, channels, reads, statistics, dx);
}

// tenon:LayerNormGrad(dy, x, scale)
std::string refuse_layer_norm_grad(const Imported& graph, const NodeInfo& node) {
  if (node.input(1) == kNone || node.input(2) == kNone) return "an absent operand";
  const ValueInfo& x = graph.value(node.inputs[1]);
  if (float_suffix(x.dtype).empty()) return cat("no kernels for ", dtype_name(x.dtype));
  for (int value : {node.inputs[0], node.inputs[2]}) {
    if (graph.value(value).dtype != x.dtype) return "operands of two types";
  }
  if (x.dims.empty()) return "a scalar";
  return {};
}

void lower_layer_norm_grad(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.inputs[1]);
  size_t axis = axis_of(node.source.attr_int("axis", -1), x.dims.size());
  LayerNormGradArgs args{};
  args.rows = 1;
  for (size_t i = 0; i < axis; ++i)
    args.rows *= static_cast<uint64_t>(x.dims[i]);
  args.cols = static_cast<uint64_t>(x.count()) / args.rows;
  args.epsilon = static_cast<float>(node.source.attr_float("epsilon", 1e-5));
  int mean = scratch_floats(lowering, node, "mean", args.rows);
  int inv_std = scratch_floats(lowering, node, "deviation", args.rows);
  int dy = lowering.buffer(node.inputs[0]), from = lowering.buffer(node.inputs[1]);
  Launch made = lowering.launch("layer_norm_grad_" + float_suffix(x.dtype), args);
  made.block = row_block(args.cols);
  made.grid = row_grid(args.rows);
  made.patches = {{offsetof(LayerNormGradArgs, dy), dy, 0},
                  {offsetof(LayerNormGradArgs, x), from, 0},
                  {offsetof(LayerNormGradArgs, scale), lowering.buffer(node.inputs[2]), 0},
                  {offsetof(LayerNormGradArgs, dx), lowering.buffer(node.outputs[0]), 0},
                  {offsetof(LayerNormGradArgs, mean), mean, 0},
                  {offsetof(LayerNormGradArgs, inv_std), inv_std, 0}};
  lowering.add_launch(node, std::move(made), 3, 12 * static_cast<double>(x.count()));
  if (node.output(1) == kNone && node.output(2) == kNone) return;
  Channels channels{args.cols, 1, args.rows};
  ChannelSums sums = add_channel_sums(lowering, node, "row_gradients", x.dtype, channels,
                                      {from, dy, mean, inv_std});
  uint64_t bytes = bytes_of(x.dtype, static_cast<int64_t>(args.cols));
  auto place = [&](size_t output) {
    return node.output(output) != kNone ? lowering.buffer(node.output(output))
                                        : lowering.scratch(cat(node.name, " unused"), bytes);
  };
  int dscale = place(1), dbias = place(2);
  add_channel_totals(lowering, node, x.dtype, channels, sums, 1, dbias, dscale);
}

}  // namespace tenon::cuda
