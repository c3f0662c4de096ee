// SPDX-License-Identifier: Apache-2.0
// Reductions, global pools, sums back to what was broadcast.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "../kernels/row_args.h"
#include "channels.hpp"
#include "launch_sizes.hpp"

namespace tenon::cuda {
namespace {

struct ReduceRow {
  const char* op;
  const char* kind;
};
constexpr ReduceRow kReductions[] = {
    {"GlobalAveragePool", "mean"},
    {"GlobalMaxPool", "max"},
    {"ReduceL1", "l1"},
    {"ReduceL2", "l2"},
    {"ReduceMax", "max"},
    {"ReduceMean", "mean"},
    {"ReduceMin", "min"},
    {"ReduceProd", "prod"},
    {"ReduceSum", "sum"},
    {"ReduceSumSquare", "sum_square"},
    {"tenon.SumTo", "sum"},
};

// Innermost first, neighbours merged.
struct Walk {
  std::vector<uint64_t> dims;
  std::vector<int64_t> strides;
};

void push_axis(Walk& walk, int64_t dim, int64_t stride) {
  if (dim == 1) return;
  if (!walk.dims.empty() &&
      stride == walk.strides.back() * static_cast<int64_t>(walk.dims.back())) {
    walk.dims.back() *= static_cast<uint64_t>(dim);
    return;
  }
  walk.dims.push_back(static_cast<uint64_t>(dim));
  walk.strides.push_back(stride);
}

// What is reduced may be walked in any order: as it lies, so that neighbours merge.
void walks_of(const Dims& dims,
              const Dims& strides,
              const std::vector<bool>& is_reduced,
              Walk* kept,
              Walk* reduced) {
  std::vector<std::pair<int64_t, int64_t>> away;  // stride, size
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (!is_reduced[axis]) push_axis(*kept, dims[axis], strides[axis]);
    if (is_reduced[axis] && dims[axis] != 1) away.emplace_back(strides[axis], dims[axis]);
  }
  std::sort(away.begin(), away.end());
  for (const auto& [stride, dim] : away)
    push_axis(*reduced, dim, stride);
}

std::vector<bool> reduced_axes(const Imported& graph, const NodeInfo& node) {
  size_t rank = graph.value(node.inputs[0]).dims.size();
  std::vector<bool> out(rank, false);
  if (node.op.starts_with("Global")) {
    std::fill(out.begin() + 2, out.end(), true);
    return out;
  }
  if (node.op == "tenon.SumTo") {  // back to what was broadcast
    const Dims& from = graph.value(node.inputs[0]).dims;
    const Dims& to = graph.value(node.outputs[0]).dims;
    for (size_t i = 0; i < rank; ++i) {
      size_t missing = rank - to.size();
      out[i] = i < missing || (to[i - missing] == 1 && from[i] != 1);
    }
    return out;
  }
  Dims axes =
      node.input(1) != kNone ? graph.integers(node.input(1)) : node.source.attr_ints("axes");
  if (axes.empty() && node.source.attr_int("noop_with_empty_axes", 0) == 0) out.assign(rank, true);
  for (int64_t axis : axes)
    out[axis_of(axis, rank)] = true;
  return out;
}

void fill_axes(const Walk& walk, unsigned* rank, unsigned long long* dims, long long* strides) {
  *rank = static_cast<unsigned>(walk.dims.size());
  for (size_t i = 0; i < walk.dims.size(); ++i) {
    dims[i] = walk.dims[i];
    strides[i] = walk.strides[i];
  }
}

}  // namespace

std::string refuse_reduce(const Imported& graph, const NodeInfo& node) {
  uint32_t dtype = graph.value(node.inputs[0]).dtype;
  if (float_suffix(dtype).empty()) return cat("no kernels for ", dtype_name(dtype));
  int axes = node.op == "tenon.SumTo" ? kNone : node.input(1);
  if (axes != kNone && !graph.value(axes).constant) return "axes that are not constant";
  std::vector<bool> is_reduced = reduced_axes(graph, node);
  if (std::count(is_reduced.begin(), is_reduced.end(), true) == 0) return "nothing to reduce";
  Walk kept, reduced;
  const Dims& dims = graph.value(node.inputs[0]).dims;
  walks_of(dims, backend::row_major_strides(dims), is_reduced, &kept, &reduced);
  if (std::max(kept.dims.size(), reduced.dims.size()) > TN_REDUCE_RANK) return "too many axes";
  return {};
}

std::string refuse_global_pool(const Imported& graph, const NodeInfo& node) {
  if (graph.value(node.inputs[0]).dims.size() < 3) return "no spatial axis";
  return refuse_reduce(graph, node);
}

namespace {

// A sum or mean of columns, long enough for more than one block of each.
bool is_by_channels(const Walk& kept, const Walk& reduced, const char* kind) {
  bool adds = std::string_view(kind) == "sum" || std::string_view(kind) == "mean";
  if (!adds || reduced.dims.size() != 1 || reduced.dims[0] < 64) return false;
  return kept.dims.size() == 1 && kept.strides[0] == 1 &&
         reduced.strides[0] == static_cast<int64_t>(kept.dims[0]);
}

constexpr uint64_t kWarpReduces = 512;    // elements at most
constexpr uint64_t kLeastPiece = 4096;    // so that a piece is worth a block
constexpr uint64_t kBlocksWanted = 1024;  // several for each multiprocessor

struct Shape {
  uint64_t blocks;
  uint32_t threads;
};

// Reads the first patch, writes the second.
void add_reduction(Lowering& lowering,
                   const NodeInfo& node,
                   std::string symbol,
                   const ReduceArgs& args,
                   const Shape& shape,
                   const Patch& from,
                   const Patch& to) {
  Launch made = lowering.launch(std::move(symbol), args);
  made.block = shape.threads;
  made.grid = row_grid(shape.blocks);
  made.patches = {from, to};
  lowering.add_launch(node, std::move(made), 1, static_cast<double>(args.outputs * args.reduced));
}

}  // namespace

void lower_reduce(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.inputs[0]);
  Walk kept, reduced;
  Lowering::Placed at = lowering.placed(node.inputs[0]);
  walks_of(x.dims, at.strides, reduced_axes(lowering.graph(), node), &kept, &reduced);
  ReduceArgs args{};
  args.outputs = static_cast<uint64_t>(lowering.value(node.outputs[0]).count());
  args.reduced = static_cast<uint64_t>(x.count()) / args.outputs;
  fill_axes(kept, &args.kept_rank, args.kept_dims, args.kept_strides);
  fill_axes(reduced, &args.reduced_rank, args.reduced_dims, args.reduced_strides);
  const ReduceRow* row = std::find_if(std::begin(kReductions), std::end(kReductions),
                                      [&](const ReduceRow& r) { return node.op == r.op; });
  if (is_by_channels(kept, reduced, row->kind)) {
    Channels channels{kept.dims[0], 1, reduced.dims[0]};
    ChannelReads reads;
    reads.x = at.buffer;
    ChannelSums sums = add_channel_sums(lowering, node, "values", x.dtype, channels, reads);
    bool is_mean = std::string_view(row->kind) == "mean";
    double factor = is_mean ? 1 / static_cast<double>(channels.count) : 1;
    int out = lowering.buffer(node.outputs[0]);
    return add_channel_totals(lowering, node, x.dtype, sums, -1, out, -1, factor);
  }
  // Neighbours are reduced: a block for each output. Neighbours are kept: a thread for each.
  bool by_rows = kept.dims.empty() || (!reduced.dims.empty() && reduced.strides[0] == 1);
  bool are_neighbours = reduced.dims.size() == 1 && reduced.strides[0] == 1;
  std::string which = cat(row->kind, "_", float_suffix(x.dtype));
  Patch from{offsetof(ReduceArgs, x), at.buffer, 0};
  Patch to{offsetof(ReduceArgs, y), lowering.buffer(node.outputs[0]), 0};
  uint64_t pieces = std::min(kBlocksWanted / args.outputs, args.reduced / kLeastPiece);
  auto add = [&](const char* how, uint64_t blocks, uint32_t threads) {
    add_reduction(lowering, node, cat("reduce_", how, "_", which), args, {blocks, threads}, from,
                  to);
  };
  if (!by_rows) return add("columns", (args.outputs + 127) / 128, 128);
  if (are_neighbours && args.reduced <= kWarpReduces)
    return add("warps", (args.outputs + 7) / 8, 256);
  if (!are_neighbours || pieces < 2) return add("rows", args.outputs, row_block(args.reduced));
  args.piece = ((args.reduced + pieces - 1) / pieces + 15) / 16 * 16;  // whole vectors
  args.pieces = (args.reduced + args.piece - 1) / args.piece;
  Patch result = to;
  int between =
      lowering.scratch(cat(node.name, " pieces"), args.outputs * args.pieces * sizeof(float));
  to = {offsetof(ReduceArgs, partial), between, 0};
  add("pieces", args.outputs * args.pieces, 256);
  from = to;
  to = result;
  add("totals", args.outputs, row_block(args.pieces));
}

std::string refuse_sum_to(const Imported& graph, const NodeInfo& node) {
  std::vector<bool> is_reduced = reduced_axes(graph, node);
  bool is_view = std::count(is_reduced.begin(), is_reduced.end(), true) == 0;
  return is_view ? std::string() : refuse_reduce(graph, node);
}

void lower_sum_to(Lowering& lowering, const NodeInfo& node) {
  std::vector<bool> is_reduced = reduced_axes(lowering.graph(), node);
  bool is_view = std::count(is_reduced.begin(), is_reduced.end(), true) == 0;
  is_view ? lowering.alias(node.outputs[0], node.inputs[0]) : lower_reduce(lowering, node);
}

void lower_global_pool(Lowering& lowering, const NodeInfo& node) {
  lower_reduce(lowering, node);
}

}  // namespace tenon::cuda
