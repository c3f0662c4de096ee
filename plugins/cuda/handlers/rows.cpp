// SPDX-License-Identifier: Apache-2.0
// Softmax, normalisation over trailing axes, reductions.

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "../kernels/row_args.h"
#include "handlers.hpp"

namespace tenon::cuda {
namespace {

std::string refuse_type(const Imported& graph, const NodeInfo& node) {
  for (int value : node.in) {
    if (value == kAbsent) continue;
    uint32_t dtype = graph.value(value).dtype;
    if (is_float(dtype) && dtype != graph.value(node.in[0]).dtype) return "operands of two types";
  }
  uint32_t dtype = graph.value(node.in[0]).dtype;
  return real_suffix(dtype).empty() ? cat("no kernels for ", dtype_name(dtype)) : std::string();
}

// Threads per block for rows of this length: whole warps, at most 256.
uint32_t row_block(uint64_t cols) {
  return static_cast<uint32_t>(std::clamp<uint64_t>((cols + 31) / 32 * 32, 32, 256));
}

uint32_t row_grid(uint64_t rows) {
  return static_cast<uint32_t>(std::min<uint64_t>(rows, 1u << 20));
}

uint64_t count_from(const Dims& dims, size_t begin, size_t end) {
  return static_cast<uint64_t>(std::accumulate(dims.begin() + static_cast<int64_t>(begin),
                                               dims.begin() + static_cast<int64_t>(end), int64_t{1},
                                               std::multiplies<>()));
}

}  // namespace

std::string refuse_softmax(const Imported& graph, const NodeInfo& node) {
  return refuse_type(graph, node);
}

void lower_softmax(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.in[0]);
  SoftmaxArgs args{};
  size_t rank = x.dims.size(),
         axis = axis_of(node.source.attr_int("axis", -1), std::max<size_t>(rank, 1));
  args.inner = rank == 0 ? 1 : count_from(x.dims, axis + 1, rank);
  args.cols = rank == 0 ? 1 : static_cast<uint64_t>(x.dims[axis]);
  args.rows = static_cast<uint64_t>(x.count()) / args.cols;
  args.is_log = node.op == "LogSoftmax";
  Launch made = lowering.launch("softmax_" + real_suffix(x.dtype), args);
  made.block = row_block(args.cols);
  made.grid = row_grid(args.rows);
  made.patches = {{offsetof(SoftmaxArgs, x), lowering.buffer(node.in[0]), 0},
                  {offsetof(SoftmaxArgs, y), lowering.buffer(node.out[0]), 0}};
  lowering.add_launch(node, std::move(made), 1, 5.0 * static_cast<double>(x.count()));
}

std::string refuse_norm(const Imported& graph, const NodeInfo& node) {
  if (std::string why = refuse_type(graph, node); !why.empty()) return why;
  const ValueInfo& x = graph.value(node.in[0]);
  if (x.dims.empty()) return "a scalar";
  size_t axis = axis_of(node.source.attr_int("axis", -1), x.dims.size());
  int64_t cols = static_cast<int64_t>(count_from(x.dims, axis, x.dims.size()));
  for (size_t i : {size_t{1}, size_t{2}}) {
    int value = node.input(i);
    if (value != kAbsent && graph.value(value).count() != cols)
      return "a scale or bias that is broadcast";
  }
  for (size_t i : {size_t{1}, size_t{2}}) {
    int value = node.output(i);
    if (value != kAbsent && graph.value(value).dtype != TN_F32)
      return "statistics that are not float32";
  }
  return {};
}

void lower_norm(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.in[0]);
  size_t axis = axis_of(node.source.attr_int("axis", -1), x.dims.size());
  NormArgs args{};
  args.cols = count_from(x.dims, axis, x.dims.size());
  args.rows = static_cast<uint64_t>(x.count()) / args.cols;
  args.epsilon = static_cast<float>(node.source.attr_float("epsilon", 1e-5));
  args.is_rms = node.op == "RMSNormalization";
  Launch made = lowering.launch("norm_" + real_suffix(x.dtype), args);
  made.block = row_block(args.cols);
  made.grid = row_grid(args.rows);
  auto point = [&](size_t at, int value) {
    if (value != kAbsent)
      made.patches.push_back({static_cast<uint32_t>(at), lowering.buffer(value), 0});
  };
  point(offsetof(NormArgs, x), node.in[0]);
  point(offsetof(NormArgs, scale), node.input(1));
  point(offsetof(NormArgs, bias), node.input(2));
  size_t n_reads = made.patches.size();
  point(offsetof(NormArgs, y), node.out[0]);
  point(offsetof(NormArgs, mean), node.output(1));
  point(offsetof(NormArgs, inv_std), node.output(2));
  lowering.add_launch(node, std::move(made), n_reads, 8.0 * static_cast<double>(x.count()));
}

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

void walks_of(const Dims& dims,
              const Dims& strides,
              const std::vector<bool>& is_reduced,
              Walk* kept,
              Walk* reduced) {
  for (size_t axis = dims.size(); axis-- > 0;)
    push_axis(is_reduced[axis] ? *reduced : *kept, dims[axis], strides[axis]);
}

std::vector<bool> reduced_axes(const Imported& graph, const NodeInfo& node) {
  size_t rank = graph.value(node.in[0]).dims.size();
  std::vector<bool> out(rank, false);
  if (node.op.starts_with("Global")) {
    std::fill(out.begin() + 2, out.end(), true);
    return out;
  }
  Dims axes =
      node.input(1) != kAbsent ? graph.integers(node.input(1)) : node.source.attr_ints("axes");
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
  if (std::string why = refuse_type(graph, node); !why.empty()) return why;
  int axes = node.input(1);
  if (axes != kAbsent && !graph.value(axes).constant) return "axes that are not constant";
  std::vector<bool> is_reduced = reduced_axes(graph, node);
  if (std::count(is_reduced.begin(), is_reduced.end(), true) == 0) return "nothing to reduce";
  Walk kept, reduced;
  const Dims& dims = graph.value(node.in[0]).dims;
  walks_of(dims, row_major(dims), is_reduced, &kept, &reduced);
  if (std::max(kept.dims.size(), reduced.dims.size()) > TN_REDUCE_RANK) return "too many axes";
  return {};
}

std::string refuse_global_pool(const Imported& graph, const NodeInfo& node) {
  if (graph.value(node.in[0]).dims.size() < 3) return "no spatial axis";
  return refuse_reduce(graph, node);
}

void lower_reduce(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.in[0]);
  Walk kept, reduced;
  Lowering::Placed at = lowering.placed(node.in[0]);
  walks_of(x.dims, at.strides, reduced_axes(lowering.graph(), node), &kept, &reduced);
  ReduceArgs args{};
  args.outputs = static_cast<uint64_t>(lowering.value(node.out[0]).count());
  args.reduced = static_cast<uint64_t>(x.count()) / args.outputs;
  fill_axes(kept, &args.kept_rank, args.kept_dims, args.kept_strides);
  fill_axes(reduced, &args.reduced_rank, args.reduced_dims, args.reduced_strides);
  // Neighbours are reduced: a block for each output. Neighbours are kept: a thread for each.
  bool by_rows = kept.dims.empty() || (!reduced.dims.empty() && reduced.strides[0] == 1);
  const ReduceRow* row = std::find_if(std::begin(kReductions), std::end(kReductions),
                                      [&](const ReduceRow& r) { return node.op == r.op; });
  Launch made = lowering.launch(
      cat(by_rows ? "reduce_rows_" : "reduce_columns_", row->kind, "_", real_suffix(x.dtype)),
      args);
  made.block = by_rows ? row_block(args.reduced) : 128;
  made.grid = by_rows ? row_grid(args.outputs) : row_grid((args.outputs + 127) / 128);
  made.patches = {{offsetof(ReduceArgs, x), at.buffer, 0},
                  {offsetof(ReduceArgs, y), lowering.buffer(node.out[0]), 0}};
  lowering.add_launch(node, std::move(made), 1, static_cast<double>(x.count()));
}

void lower_global_pool(Lowering& lowering, const NodeInfo& node) {
  lower_reduce(lowering, node);
}

}  // namespace tenon::cuda
