// SPDX-License-Identifier: Apache-2.0
// What moves elements without looking at them: views, transposes, slices, concatenation, gather.

#include <algorithm>
#include <cstddef>

#include "../kernels/copy_args.h"
#include "handlers.hpp"
#include "launch_sizes.hpp"

namespace tenon::cuda {
namespace {

// Kernels move whole bytes, along a bounded number of axes.
std::string refuse_shape(const Imported& graph, const NodeInfo& node) {
  for (int value : {node.input(0), node.output(0)}) {
    const ValueInfo& info = graph.value(value);
    uint64_t bits = TN_DTYPE_BITS(info.dtype);
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64) {
      return cat("elements of ", bits, " bits");
    }
    if (info.dims.size() > TN_COPY_RANK) return cat("more than ", TN_COPY_RANK, " axes");
  }
  return {};
}

// 0, 1, 2 ...
Dims counted(size_t n) {
  Dims out;
  out.reserve(n);
  for (size_t i = 0; i < n; ++i)
    out.push_back(static_cast<int64_t>(i));
  return out;
}

std::string refuse_parameters(const Imported& graph, const NodeInfo& node, size_t first) {
  for (size_t i = first; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNone && !graph.value(node.inputs[i]).constant) {
      return cat("input ", graph.value(node.inputs[i]).name, " is not constant");
    }
  }
  return {};
}

}  // namespace

std::string refuse_view(const Imported& graph, const NodeInfo& node) {
  if (node.output(1) != kNone) return "a second output";
  if (node.op == "Dropout" && node.input(2) != kNone) {
    const ValueInfo& mode = graph.value(node.input(2));
    if (!mode.constant || *mode.constant.data<const unsigned char>() != 0) return "training mode";
  }
  return {};
}

void lower_view(Lowering& lowering, const NodeInfo& node) {
  lowering.alias(node.outputs[0], node.inputs[0]);
}

std::string refuse_transpose(const Imported& graph, const NodeInfo& node) {
  return refuse_shape(graph, node);
}

void lower_transpose(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.inputs[0]);
  const ValueInfo& y = lowering.value(node.outputs[0]);
  Dims perm = node.source.attr_ints("perm");
  if (perm.empty()) {
    perm = counted(x.dims.size());
    std::reverse(perm.begin(), perm.end());
  }
  Lowering::Placed at = lowering.placed(node.inputs[0]);
  Dims moved;
  for (int64_t axis : perm)
    moved.push_back(at.strides[axis_of(axis, at.strides.size())]);
  lowering.add_strided_copy(
      node, x.dtype, y.dims, {at.buffer, moved, 0},
      {lowering.buffer(node.outputs[0]), backend::row_major_strides(y.dims), 0});
}

std::string refuse_slice(const Imported& graph, const NodeInfo& node) {
  if (std::string why = refuse_parameters(graph, node, 1); !why.empty()) return why;
  return refuse_shape(graph, node);
}

void lower_slice(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.inputs[0]);
  const ValueInfo& y = lowering.value(node.outputs[0]);
  Dims starts = lowering.graph().integers(node.input(1));
  Dims axes = lowering.graph().integers(node.input(3)),
       steps = lowering.graph().integers(node.input(4));
  if (axes.empty()) axes = counted(starts.size());
  if (steps.empty()) steps.assign(starts.size(), 1);
  Dims strides = backend::row_major_strides(x.dims);
  int64_t offset = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    size_t axis = axis_of(axes[i], x.dims.size());
    int64_t extent = x.dims[axis], start = starts[i] < 0 ? starts[i] + extent : starts[i];
    start = std::clamp<int64_t>(start, 0, steps[i] < 0 ? extent - 1 : extent);
    offset += start * strides[axis];
    strides[axis] *= steps[i];
  }
  lowering.add_strided_copy(
      node, x.dtype, y.dims, {lowering.buffer(node.inputs[0]), strides, offset},
      {lowering.buffer(node.outputs[0]), backend::row_major_strides(y.dims), 0});
}

std::string refuse_split(const Imported& graph, const NodeInfo& node) {
  return refuse_shape(graph, node);
}

void lower_split(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.inputs[0]);
  size_t axis = axis_of(node.source.attr_int("axis", 0), x.dims.size());
  Dims strides = backend::row_major_strides(x.dims);
  int64_t offset = 0;
  for (int output : node.outputs) {
    if (output == kNone) continue;
    const ValueInfo& y = lowering.value(output);
    lowering.add_strided_copy(node, x.dtype, y.dims,
                              {lowering.buffer(node.inputs[0]), strides, offset},
                              {lowering.buffer(output), backend::row_major_strides(y.dims), 0});
    offset += y.dims[axis] * strides[axis];
  }
}

std::string refuse_concat(const Imported& graph, const NodeInfo& node) {
  return refuse_shape(graph, node);
}

void lower_concat(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& y = lowering.value(node.outputs[0]);
  size_t axis = axis_of(node.source.attr_int("axis", 0), y.dims.size());
  Dims strides = backend::row_major_strides(y.dims);
  int64_t offset = 0;
  for (int input : node.inputs) {
    if (input == kNone) continue;
    const ValueInfo& x = lowering.value(input);
    if (x.count() == 0) continue;
    lowering.add_strided_copy(node, y.dtype, x.dims,
                              {lowering.buffer(input), backend::row_major_strides(x.dims), 0},
                              {lowering.buffer(node.outputs[0]), strides, offset});
    offset += x.dims[axis] * strides[axis];
  }
}

std::string refuse_expand(const Imported& graph, const NodeInfo& node) {
  return refuse_shape(graph, node);
}

void lower_expand(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.inputs[0]);
  const ValueInfo& y = lowering.value(node.outputs[0]);
  Dims own = backend::row_major_strides(x.dims), strides(y.dims.size(), 0);
  size_t shift = y.dims.size() - x.dims.size();
  for (size_t i = 0; i < x.dims.size(); ++i)
    strides[i + shift] = x.dims[i] == 1 ? 0 : own[i];
  lowering.add_strided_copy(
      node, x.dtype, y.dims, {lowering.buffer(node.inputs[0]), strides, 0},
      {lowering.buffer(node.outputs[0]), backend::row_major_strides(y.dims), 0});
}

std::string refuse_gather(const Imported& graph, const NodeInfo& node) {
  uint32_t dtype = graph.value(node.inputs[1]).dtype;
  if (dtype != TN_I32 && dtype != TN_I64) return cat("indices of ", dtype_name(dtype));
  return refuse_shape(graph, node);
}

void lower_gather(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.inputs[0]);
  const ValueInfo& indices = lowering.value(node.inputs[1]);
  size_t axis = axis_of(node.source.attr_int("axis", 0), x.dims.size());
  GatherArgs args{};
  args.outer = args.inner = 1;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    uint64_t dim = static_cast<uint64_t>(x.dims[i]);
    if (i == axis)
      args.extent = dim;
    else
      (i < axis ? args.outer : args.inner) *= dim;
  }
  args.n_indices = static_cast<uint64_t>(indices.count());
  args.index_bytes = indices.dtype == TN_I64 ? 8 : 4;
  args.fault_number = lowering.fault(cat("node ", node.name, ": an index of ", indices.name,
                                         " lies outside axis ", axis, " of size ", args.extent));
  uint64_t unit = bytes_of(x.dtype, 1);
  for (; unit < 16 && args.inner % 2 == 0; unit *= 2)
    args.inner /= 2;
  Launch made = lowering.launch(cat("gather_", unit), args);
  made.block = kElementBlock;
  made.grid = element_grid(args.outer * args.n_indices * args.inner);
  made.patches = {{offsetof(GatherArgs, from), lowering.buffer(node.inputs[0]), 0},
                  {offsetof(GatherArgs, indices), lowering.buffer(node.inputs[1]), 0},
                  {offsetof(GatherArgs, to), lowering.buffer(node.outputs[0]), 0},
                  {offsetof(GatherArgs, fault), kFaultBuffer, 0}};
  made.fault_at = offsetof(GatherArgs, fault_number);
  lowering.add_launch(node, std::move(made), 2, 0);
}

}  // namespace tenon::cuda
