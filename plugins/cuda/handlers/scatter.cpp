// SPDX-License-Identifier: Apache-2.0
// ScatterND: what it starts from is copied unless nobody else wants it, then slices are put or
// added.
#include <cstddef>

#include "../kernels/copy_args.h"
#include "handlers.hpp"
#include "launch_sizes.hpp"

namespace tenon::cuda {
namespace {

bool adds(const NodeInfo& node) {
  return node.source.attr_text("reduction", "none") == "add";
}

}  // namespace

std::string refuse_scatter(const Imported& graph, const NodeInfo& node) {
  if (node.input(1) == kNone || node.input(2) == kNone) return "an absent operand";
  const ValueInfo& data = graph.value(node.inputs[0]);
  const ValueInfo& indices = graph.value(node.inputs[1]);
  std::string_view how = node.source.attr_text("reduction", "none");
  if (how != "none" && how != "add") return cat("reduction ", how);
  if (adds(node) && data.dtype != TN_F32) return cat("sums of ", dtype_name(data.dtype));
  if (indices.dtype != TN_I32 && indices.dtype != TN_I64)
    return cat("indices of ", dtype_name(indices.dtype));
  uint64_t bits = TN_DTYPE_BITS(data.dtype);
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
    return cat("elements of ", bits, " bits");
  if (indices.dims.empty() || indices.dims.back() < 1 || indices.dims.back() > TN_COPY_RANK)
    return "a depth of indices that there are no kernels for";
  return {};
}

void lower_scatter(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& data = lowering.value(node.inputs[0]);
  const ValueInfo& indices = lowering.value(node.inputs[1]);
  // Zeros that were made for this node, as by the gradient of Gather, are added to as they are.
  if (lowering.is_spare(node.inputs[0])) {
    lowering.alias(node.outputs[0], node.inputs[0]);
  } else {
    int from = lowering.buffer(node.inputs[0]);
    lowering.add_move(node.name, node.op, from, lowering.buffer(node.outputs[0]), data.bytes());
  }
  int to = lowering.buffer(node.outputs[0]);
  if (lowering.value(node.inputs[2]).count() == 0) return;
  ScatterArgs args{};
  args.depth = static_cast<unsigned>(indices.dims.back());
  args.n_indices = static_cast<uint64_t>(indices.count()) / args.depth;
  args.index_bytes = indices.dtype == TN_I64 ? 8 : 4;
  uint64_t slices = 1;
  for (size_t axis = args.depth; axis-- > 0;) {
    args.extents[axis] = static_cast<uint64_t>(data.dims[axis]);
    args.strides[axis] = slices;
    slices *= args.extents[axis];
  }
  args.inner = static_cast<uint64_t>(data.count()) / slices;
  args.fault_number = lowering.fault(
      cat("node ", node.name, ": an index of ", indices.name, " lies outside its axis"));
  uint64_t unit = bytes_of(data.dtype, 1);
  for (; !adds(node) && unit < 16 && args.inner % 2 == 0; unit *= 2)
    args.inner /= 2;
  Launch made = lowering.launch(adds(node) ? "scatter_add_f32" : cat("scatter_", unit), args);
  made.block = kElementBlock;
  made.grid = element_grid(args.n_indices * args.inner);
  made.patches = {{offsetof(ScatterArgs, from), lowering.buffer(node.inputs[2]), 0},
                  {offsetof(ScatterArgs, indices), lowering.buffer(node.inputs[1]), 0},
                  {offsetof(ScatterArgs, to), to, 0},
                  {offsetof(ScatterArgs, fault), kFaultBuffer, 0}};
  made.fault_at = offsetof(ScatterArgs, fault_number);
  lowering.add_launch(node, std::move(made), 2, 0);
}

}  // namespace tenon::cuda
