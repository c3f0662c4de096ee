// SPDX-License-Identifier: Apache-2.0
// Softmax and normalization over trailing axes.

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "../kernels/row_args.h"
#include "handlers.hpp"
#include "launch_sizes.hpp"

namespace tenon::cuda {
namespace {

std::string refuse_type(const Imported& graph, const NodeInfo& node) {
  for (int value : node.inputs) {
    if (value == kNone) continue;
    uint32_t dtype = graph.value(value).dtype;
    if (is_float(dtype) && dtype != graph.value(node.inputs[0]).dtype)
      return "operands of two types";
  }
  uint32_t dtype = graph.value(node.inputs[0]).dtype;
  return float_suffix(dtype).empty() ? cat("no kernels for ", dtype_name(dtype)) : std::string();
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
  const ValueInfo& x = lowering.value(node.inputs[0]);
  SoftmaxArgs args{};
  size_t rank = x.dims.size(),
         axis = axis_of(node.source.attr_int("axis", -1), std::max<size_t>(rank, 1));
  args.inner = rank == 0 ? 1 : count_from(x.dims, axis + 1, rank);
  args.cols = rank == 0 ? 1 : static_cast<uint64_t>(x.dims[axis]);
  args.rows = static_cast<uint64_t>(x.count()) / args.cols;
  args.is_log = node.op == "LogSoftmax";
  Launch made = row_launch(lowering.launch("softmax_" + float_suffix(x.dtype), args), args.rows,
                           args.cols, args.inner == 1);
  made.patches = {{offsetof(SoftmaxArgs, x), lowering.buffer(node.inputs[0]), 0},
                  {offsetof(SoftmaxArgs, y), lowering.buffer(node.outputs[0]), 0}};
  lowering.add_launch(node, std::move(made), 1, 5.0 * static_cast<double>(x.count()));
}

std::string refuse_norm(const Imported& graph, const NodeInfo& node) {
  if (std::string why = refuse_type(graph, node); !why.empty()) return why;
  const ValueInfo& x = graph.value(node.inputs[0]);
  if (x.dims.empty()) return "a scalar";
  size_t axis = axis_of(node.source.attr_int("axis", -1), x.dims.size());
  Dims normalized(x.dims.begin() + static_cast<int64_t>(axis), x.dims.end());
  for (size_t i : {size_t{1}, size_t{2}}) {
    int value = node.input(i);
    if (value != kNone &&
        without_leading_ones(graph.value(value).dims) != without_leading_ones(normalized))
      return "a scale or bias that is broadcast";
  }
  for (size_t i : {size_t{1}, size_t{2}}) {
    int value = node.output(i);
    if (value != kNone && graph.value(value).dtype != TN_F32)
      return "statistics that are not float32";
  }
  return {};
}

void lower_norm(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& x = lowering.value(node.inputs[0]);
  size_t axis = axis_of(node.source.attr_int("axis", -1), x.dims.size());
  NormArgs args{};
  args.cols = count_from(x.dims, axis, x.dims.size());
  args.rows = static_cast<uint64_t>(x.count()) / args.cols;
  args.epsilon = static_cast<float>(node.source.attr_float("epsilon", 1e-5));
  args.is_rms = node.op == "RMSNormalization";
  Launch made = row_launch(lowering.launch("norm_" + float_suffix(x.dtype), args), args.rows,
                           args.cols, true);
  auto point = [&](size_t at, int value) {
    if (value != kNone)
      made.patches.push_back({static_cast<uint32_t>(at), lowering.buffer(value), 0});
  };
  point(offsetof(NormArgs, x), node.inputs[0]);
  point(offsetof(NormArgs, scale), node.input(1));
  point(offsetof(NormArgs, bias), node.input(2));
  size_t n_reads = made.patches.size();
  point(offsetof(NormArgs, y), node.outputs[0]);
  point(offsetof(NormArgs, mean), node.output(1));
  point(offsetof(NormArgs, inv_std), node.output(2));
  lowering.add_launch(node, std::move(made), n_reads, 8.0 * static_cast<double>(x.count()));
}

}  // namespace tenon::cuda
