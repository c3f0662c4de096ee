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

}  // namespace

// Inference is taken apart: a group of pointwise nodes does it.
std::string refuse_batch_norm(const Imported& graph, const NodeInfo& node) {
  if (node.source.attr_int("training_mode", 0) == 0) return "given statistics";
  if (std::string why = refuse_floats(graph, node, 1, 4); !why.empty()) return why;
  return refuse_batch(graph, node.inputs[0]);
}

// cuda.BatchStatistics(x, running mean, running variance): mean and reciprocal deviation of each
// channel, and the running ones after it.
void lower_batch_statistics(Lowering& lowering, const NodeInfo& node) {
  int x = node.inputs[0];
  uint32_t dtype = lowering.value(x).dtype;
  Channels channels = channels_of(lowering, x);
  ChannelReads reads;
  reads.x = lowering.placed(x).buffer;
  ChannelSums sums = add_channel_sums(lowering, node, "distances", dtype, channels, reads);
  ChannelStatisticsArgs args{};
  args.channels = channels.channels;
  args.inner = channels.inner;
  args.count = channels.count;
  args.pieces = sums.pieces;
  args.epsilon = static_cast<float>(node.source.attr_float("epsilon", 1e-5));
  args.momentum = static_cast<float>(node.source.attr_float("momentum", 0.9));
  Launch made = lowering.launch("channel_statistics_" + float_suffix(dtype), args);
  made.is_elementwise = true;  // running statistics
  share_totals(&made, args.channels);
  made.patches = {{offsetof(ChannelStatisticsArgs, x), reads.x, 0},
                  {offsetof(ChannelStatisticsArgs, partial), sums.partial, 0}};
  auto point = [&](size_t at, int value) {
    if (value != kNone)
      made.patches.push_back({static_cast<uint32_t>(at), lowering.buffer(value), 0});
  };
  bool has_mean = node.output(2) != kNone, has_variance = node.output(3) != kNone;
  point(offsetof(ChannelStatisticsArgs, mean_before), has_mean ? node.inputs[1] : kNone);
  point(offsetof(ChannelStatisticsArgs, variance_before), has_variance ? node.inputs[2] : kNone);
  size_t n_reads = made.patches.size();
  point(offsetof(ChannelStatisticsArgs, mean), node.outputs[0]);
  point(offsetof(ChannelStatisticsArgs, inv_std), node.outputs[1]);
  point(offsetof(ChannelStatisticsArgs, mean_after), node.output(2));
  point(offsetof(ChannelStatisticsArgs, variance_after), node.output(3));
  lowering.add_launch(node, std::move(made), n_reads, static_cast<double>(args.channels));
}

// tenon:BatchNormGrad(dy, x, scale)
std::string refuse_batch_norm_grad(const Imported& graph, const NodeInfo& node) {
  if (std::string why = refuse_floats(graph, node, 2, 2); !why.empty()) return why;
  if (graph.value(node.inputs[0]).dtype != graph.value(node.inputs[1]).dtype)
    return "operands of two types";
  return refuse_batch(graph, node.inputs[1]);
}

// cuda.BatchGradients(dy, x, mean, reciprocal deviation): the gradients by scale and bias.
void lower_batch_gradients(Lowering& lowering, const NodeInfo& node) {
  int dy = node.inputs[0], x = node.inputs[1];
  bool last = lowering.lies_channels_last(x);
  auto read = [&](int value) {
    return last ? lowering.channels_last(value) : lowering.buffer(value);
  };
  Channels channels = channels_of(lowering, x);
  ChannelReads reads{read(x), read(dy), lowering.buffer(node.inputs[2]), -1};
  ChannelSums sums =
      add_channel_sums(lowering, node, "gradients", lowering.value(x).dtype, channels, reads);
  add_channel_totals(lowering, node, TN_F32, sums, lowering.buffer(node.inputs[3]),
                     lowering.buffer(node.outputs[1]), lowering.buffer(node.outputs[0]));
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
  Launch made = row_launch(lowering.launch("layer_norm_grad_" + float_suffix(x.dtype), args),
                           args.rows, args.cols, true);
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
  add_channel_totals(lowering, node, x.dtype, sums, -1, dbias, dscale);
}

}  // namespace tenon::cuda
