// SPDX-License-Identifier: Apache-2.0
// Pooling by a kernel of ours, convolution by cuDNN.
#include "window.hpp"

#include <algorithm>
#include <cstddef>

#include "../kernels/row_args.h"

namespace tenon::cuda {
namespace {

Dims kernel_of(const Imported& graph, const NodeInfo& node) {
  if (node.op != "Conv") return node.source.attr_ints("kernel_shape");
  const Dims& w = graph.value(node.in[1]).dims;
  return w.size() < 3 ? Dims() : Dims(w.begin() + 2, w.end());
}

}  // namespace

std::string refuse_window(const Imported& graph, const NodeInfo& node) {
  const ValueInfo& x = graph.value(node.in[0]);
  if (real_suffix(x.dtype).empty()) return cat("no kernels for ", dtype_name(x.dtype));
  if (x.dims.size() != 3 && x.dims.size() != 4) return "neither one nor two spatial axes";
  if (kernel_of(graph, node).size() + 2 != x.dims.size()) return "a kernel of another rank";
  return {};
}

Window window_of(const Imported& graph, const NodeInfo& node, const Dims& kernel) {
  const Dims& x = graph.value(node.in[0]).dims;
  const Dims& y = graph.value(node.out[0]).dims;
  Dims strides = node.source.attr_ints("strides"), dilations = node.source.attr_ints("dilations");
  Dims pads = node.source.attr_ints("pads");
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
      int64_t total = std::max<int64_t>(0, (w.out[axis] - 1) * w.stride[axis] + reach - w.in[axis]);
      w.pad[axis] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.end_pad[axis] = total - w.pad[axis];
    }
  }
  return w;
}

std::string refuse_pool(const Imported& graph, const NodeInfo& node) {
  if (node.output(1) != kAbsent && !graph.value(node.output(1)).users.empty()) return "indices";
  if (node.output(1) != kAbsent && graph.value(node.output(1)).is_output) return "indices";
  return refuse_window(graph, node);
}

void lower_pool(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.in[0]);
  Window w = window_of(lowering.graph(), node, node.source.attr_ints("kernel_shape"));
  PoolArgs args{};
  args.planes = static_cast<uint64_t>(x.dims[0] * x.dims[1]);
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
  args.is_average = node.op == "AveragePool";
  args.counts_padding = node.source.attr_int("count_include_pad", 0) != 0;
  uint64_t count = static_cast<uint64_t>(lowering.value(node.out[0]).count());
  Launch made = lowering.launch("pool_" + real_suffix(x.dtype), args);
  made.block = 256;
  made.grid = static_cast<uint32_t>(std::clamp<uint64_t>((count + 255) / 256, 1, 65536));
  made.patches = {{offsetof(PoolArgs, x), lowering.buffer(node.in[0]), 0},
                  {offsetof(PoolArgs, y), lowering.buffer(node.out[0]), 0}};
  lowering.add_launch(node, std::move(made), 1,
                      static_cast<double>(count) * static_cast<double>(w.kernel[0] * w.kernel[1]));
}

std::string refuse_conv(const Imported& graph, const NodeInfo& node) {
  if (std::string why = refuse_window(graph, node); !why.empty()) return why;
  for (int value : node.in) {
    if (value != kAbsent && graph.value(value).dtype != graph.value(node.in[0]).dtype) {
      return "operands of two types";
    }
  }
  Window w = window_of(graph, node, kernel_of(graph, node));
  for (int axis = 0; axis < 2; ++axis) {
    if (w.pad[axis] != w.end_pad[axis] || w.pad[axis] < 0)
      return "padding that is not the same at both ends";
  }
  return {};
}

void lower_conv(Lowering& lowering, const NodeInfo& node) {
  Window w = window_of(lowering.graph(), node, kernel_of(lowering.graph(), node));
  const Dims& x = lowering.value(node.in[0]).dims;
  Lowering::Tail tail = lowering.tail_of(node);
  const ValueInfo& y = lowering.value(tail.out);
  Convolution conv;
  conv.dtype = y.dtype;
  conv.x = lowering.buffer(node.in[0]);
  conv.w = lowering.buffer(node.in[1]);
  int bias = tail.bias != kAbsent ? tail.bias : node.input(2);
  if (bias != kAbsent) conv.bias = lowering.buffer(bias);
  conv.y = lowering.buffer(tail.out);
  conv.n = x[0];
  conv.c = x[1];
  conv.h = w.in[0];
  conv.width = w.in[1];
  conv.k = y.dims[1];
  conv.r = w.kernel[0];
  conv.s = w.kernel[1];
  conv.p = w.out[0];
  conv.q = w.out[1];
  conv.groups = node.source.attr_int("group", 1);
  for (int axis = 0; axis < 2; ++axis) {
    conv.pad[axis] = w.pad[axis];
    conv.stride[axis] = w.stride[axis];
    conv.dilation[axis] = w.dilation[axis];
  }
  conv.relu = tail.activation == Activation::kRelu;
  Step step{node.name, node.op, "cudnn", conv, {conv.x, conv.w}, {conv.y}, 0, 0};
  if (conv.bias >= 0) step.reads.push_back(conv.bias);
  step.flops = 2.0 * static_cast<double>(y.count()) *
               static_cast<double>(conv.c / conv.groups * conv.r * conv.s);
  step.bytes = static_cast<double>(lowering.value(node.in[0]).bytes() +
                                   lowering.value(node.in[1]).bytes() + y.bytes());
  lowering.add(std::move(step));
}

}  // namespace tenon::cuda
