// SPDX-License-Identifier: Apache-2.0
#include "reductions.hpp"

#include <algorithm>
#include <numeric>

namespace tenon::onednn {
namespace {

struct KernelRow {
  const char* op;
  kernels::Reduction kind;
};
constexpr KernelRow kKernelRows[] = {
    {"ReduceSum", kernels::Reduction::kSum},
    {"ReduceMean", kernels::Reduction::kMean},
    {"ReduceMax", kernels::Reduction::kMax},
    {"ReduceMin", kernels::Reduction::kMin},
    {"ReduceL1", kernels::Reduction::kL1},
    {"ReduceL2", kernels::Reduction::kL2},
    {"ReduceSumSquare", kernels::Reduction::kSumSquare},
    {"ReduceProd", kernels::Reduction::kProduct},
};

}  // namespace

Dims reduced_axes(const Graph& graph, const Node& node) {
  const size_t rank = graph.values[node.inputs[0]].dims.size();
  Dims axes = node.integers("axes");
  if (node.input(1) != kNone) {
    const Value& constant = graph.values[node.inputs[1]];
    const int64_t* data = static_cast<const int64_t*>(constant.data);
    axes.assign(data, data + constant.count());
  }
  if (axes.empty() && node.integer("noop_with_empty_axes", 0) == 0) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes)
    axis = positive_axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());  // ONNX allows one twice
  return axes;
}

std::optional<kernels::Reduction> kernel_reduction(const Node& node) {
  const KernelRow* row = std::find_if(std::begin(kKernelRows), std::end(kKernelRows),
                                      [&](const KernelRow& r) { return node.op == r.op; });
  return row == std::end(kKernelRows) ? std::nullopt : std::optional(row->kind);
}

size_t reduced_last_axes(const Graph& graph, const Node& node) {
  const std::optional<kernels::Reduction> kind = kernel_reduction(node);
  constexpr kernels::Reduction kOfRows[] = {kernels::Reduction::kSum, kernels::Reduction::kMean,
                                            kernels::Reduction::kMax, kernels::Reduction::kMin};
  if (!kind || std::ranges::find(kOfRows, *kind) == std::end(kOfRows)) return 0;
  if (node.input(1) != kNone) {
    const Value& axes = graph.values[node.inputs[1]];
    const bool is_known = axes.data != nullptr || axes.count() == 0;
    if (!is_known || axes.type != ElementType::kI64) return 0;
  }
  const Dims axes = reduced_axes(graph, node);
  const size_t rank = graph.values[node.inputs[0]].dims.size();
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int64_t>(rank - axes.size() + i)) return 0;
  return axes.size();
}

}  // namespace tenon::onednn
