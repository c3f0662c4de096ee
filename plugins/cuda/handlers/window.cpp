// SPDX-License-Identifier: Apache-2.0
// Pooling and its gradients by kernels of ours, and the windows that convolutions share.
#include "window.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

#include "../kernels/row_args.h"
#include "launch_sizes.hpp"

namespace tenon::cuda {

std::string refuse_window(const Imported& graph, int x, size_t kernel_rank) {
  const ValueInfo& info = graph.value(x);
  if (float_suffix(info.dtype).empty()) return cat("no kernels for ", dtype_name(info.dtype));
  if (info.dims.size() != 3 && info.dims.size() != 4) return "neither one nor two spatial axes";
  if (kernel_rank + 2 != info.dims.size()) return "a kernel of another rank";
  return {};
}

Window window_of(const NodeInfo& node, const Dims& x, const Dims& y, const Dims& kernel) {
  Dims strides = node.source.attr_ints("strides"), dilations = node.source.attr_ints("dilations");
  Dims pads = node.source.attr_ints("pads");
  Dims longer = node.source.attr_ints("output_padding");  // of ConvTranspose
  std::string_view mode = node.source.attr_text("auto_pad", "NOTSET");
  size_t rank = kernel.size();
  Window w;
  for (size_t i = 0; i < rank; ++i) {
    size_t axis = 2 - rank + i;
    w.in[axis] = x[i + 2];
    w.out[axis] = y[i + 2];
    w.kernel[axis] = kernel[i];
    w.stride[axis] = strides.empty() ? 1 : strides[i];
    w.dilation[axis] = dilations.empty() ? 1 : dilations[i];
    if (mode == "NOTSET" && !pads.empty()) {
      w.pad[axis] = pads[i];
      w.end_pad[axis] = pads[i + rank];
    } else if (mode.starts_with("SAME")) {
      int64_t reach = (kernel[i] - 1) * w.dilation[axis] + 1;
      int64_t covered =
          (w.out[axis] - 1) * w.stride[axis] + reach + (longer.empty() ? 0 : longer[i]);
      int64_t total = std::max<int64_t>(0, covered - w.in[axis]);
      w.pad[axis] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.end_pad[axis] = total - w.pad[axis];
    }
  }
  return w;
}

namespace {

Dims kernel_shape(const NodeInfo& node) {
  return node.source.attr_ints("kernel_shape");
}

// The kernel's arguments for a pool between these shapes, in the layout in which `x` lies.
PoolArgs pool_args(const NodeInfo& node, const Dims& x, const Dims& y, bool channels_last) {
  Window w = window_of(node, x, y, kernel_shape(node));
  PoolArgs args{};
  args.images = static_cast<uint64_t>(x[0]);
  args.channels = static_cast<uint64_t>(x[1]);
  args.channels_last = channels_last;
  args.h = static_cast<int>(w.in[0]);
  args.w = static_cast<int>(w.in[1]);
  args.p = static_cast<int>(w.out[0]);
  args.q = static_cast<int>(w.out[1]);
  for (int axis = 0; axis < 2; ++axis) {
    args.kernel[axis] = static_cast<int>(w.kernel[axis]);
    args.stride[axis] = static_cast<int>(w.stride[axis]);
    args.pad[axis] = static_cast<int>(w.pad[axis]);
    args.end_pad[axis] = static_cast<int>(w.end_pad[axis]);
    args.dilation[axis] = static_cast<int>(w.dilation[axis]);
  }
  args.is_average = node.op.find("AveragePool") != std::string::npos;
  args.counts_padding = node.source.attr_int("count_include_pad", 0) != 0;
  return args;
}

double taps_of(const PoolArgs& args, int64_t outputs) {
  return static_cast<double>(outputs) * args.kernel[0] * args.kernel[1];
}

// x and y: values of the shapes that the window goes over and that come out.
std::string refuse_images(const Imported& graph, const NodeInfo& node, int x, int y) {
  for (int value : {x, y}) {
    const Dims& dims = graph.value(value).dims;
    int64_t places = dims.size() < 2 ? 1 : element_count(std::span(dims).subspan(2));
    if (places > std::numeric_limits<int32_t>::max()) return "an image of more than 2^31 elements";
  }
  return refuse_window(graph, x, kernel_shape(node).size());
}

}  // namespace

std::string refuse_pool(const Imported& graph, const NodeInfo& node) {
  if (node.output(1) != kNone && !graph.value(node.output(1)).users.empty()) return "indices";
  if (node.output(1) != kNone && graph.value(node.output(1)).n_outputs > 0) return "indices";
  return refuse_images(graph, node, node.inputs[0], node.outputs[0]);
}

void lower_pool(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.inputs[0]);
  const ValueInfo& y = lowering.value(node.outputs[0]);
  bool last = lowering.lies_channels_last(node.inputs[0]);
  PoolArgs args = pool_args(node, x.dims, y.dims, last);
  Launch made = lowering.launch("pool_" + float_suffix(x.dtype), args);
  made.block = kElementBlock;
  made.grid = element_grid(static_cast<uint64_t>(y.count()));
  int from = last ? lowering.channels_last(node.inputs[0]) : lowering.buffer(node.inputs[0]);
  int to = last ? lowering.new_channels_last(node.outputs[0]) : lowering.buffer(node.outputs[0]);
  made.patches = {{offsetof(PoolArgs, x), from, 0}, {offsetof(PoolArgs, y), to, 0}};
  lowering.add_launch(node, std::move(made), 1, taps_of(args, y.count()));
}

// MaxPoolGrad(dy, x), AveragePoolGrad(dy, shape of x).
std::string refuse_pool_grad(const Imported& graph, const NodeInfo& node) {
  const ValueInfo& dy = graph.value(node.inputs[0]);
  const ValueInfo& dx = graph.value(node.outputs[0]);
  if (dy.dtype != dx.dtype) return "operands of two types";
  if (dy.dims.size() != dx.dims.size()) return "a gradient of another rank";
  return refuse_images(graph, node, node.outputs[0], node.inputs[0]);
}

void lower_pool_grad(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& dy = lowering.value(node.inputs[0]);
  const ValueInfo& dx = lowering.value(node.outputs[0]);
  bool is_average = node.op.find("Average") != std::string::npos;
  bool last = lowering.lies_channels_last(node.inputs[is_average ? 0 : 1]);
  PoolArgs args = pool_args(node, dx.dims, dy.dims, last);
  auto read = [&](int value) {
    return last ? lowering.channels_last(value) : lowering.buffer(value);
  };
  int from = read(node.inputs[0]), places = -1;
  std::string type = float_suffix(dx.dtype);
  if (!is_average) {
    places = lowering.scratch(node.name + " places",
                              static_cast<uint64_t>(dy.count()) * sizeof(int32_t));
    Launch find = lowering.launch("pool_places_" + type, args);
    find.block = kElementBlock;
    find.grid = element_grid(static_cast<uint64_t>(dy.count()));
    find.patches = {{offsetof(PoolArgs, x), read(node.inputs[1]), 0},
                    {offsetof(PoolArgs, places), places, 0}};
    lowering.add_launch(node, std::move(find), 1, taps_of(args, dy.count()));
  }
  Launch made = lowering.launch(cat("pool_grad_", is_average ? "average_" : "max_", type), args);
  made.block = kElementBlock;
  made.grid = element_grid(static_cast<uint64_t>(dx.count()));
  made.patches = {{offsetof(PoolArgs, dy), from, 0}};
  if (places >= 0) made.patches.push_back({offsetof(PoolArgs, places), places, 0});
  size_t n_reads = made.patches.size();
  int to = last ? lowering.new_channels_last(node.outputs[0]) : lowering.buffer(node.outputs[0]);
  made.patches.push_back({offsetof(PoolArgs, y), to, 0});
  lowering.add_launch(node, std::move(made), n_reads, static_cast<double>(dx.count()));
}

}  // namespace tenon::cuda
