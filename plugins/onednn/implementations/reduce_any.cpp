// SPDX-License-Identifier: Apache-2.0
#include "reduce_any.hpp"

#include <algorithm>
#include <array>

#include "dense.hpp"
#include "kernels/exact_reduce.h"

namespace tenon::onednn {
namespace {

using kernels::ExactReduction;
using kernels::Walk;

struct KindRow {
  std::string_view op;
  ExactReduction kind;
};
constexpr KindRow kKinds[] = {
    {"ReduceSum", ExactReduction::kSum},       {"ReduceMean", ExactReduction::kMean},
    {"ReduceMax", ExactReduction::kMax},       {"ReduceMin", ExactReduction::kMin},
    {"ReduceProd", ExactReduction::kProd},     {"ReduceL1", ExactReduction::kL1},
    {"ReduceL2", ExactReduction::kL2},         {"ReduceSumSquare", ExactReduction::kSumSquare},
    {"ReduceLogSum", ExactReduction::kLogSum}, {"ReduceLogSumExp", ExactReduction::kLogSumExp},
};

struct Reduce {
  ExactReduction kind = ExactReduction::kSum;
  ElementType type = ElementType::kF32;
  ElementType axes_type = ElementType::kI64;
  Dims dims;
  Dims result;
  Dims axes;            // when no input has them
  int64_t n_axes = -1;  // of the input; -1: absent
  bool keeps_dims = true;
  bool is_noop_without_axes = false;

  const char* split(const void* axes_data, Walk* outer, Walk* inner) const;
  const char* run(const kernels::Context& context, void* const* pointers) const;
};

// outer: the axes that stay, inner: those that go.
const char* Reduce::split(const void* axes_data, Walk* outer, Walk* inner) const {
  std::array<bool, Walk::kMostAxes> goes = {};
  int64_t n = n_axes >= 0 ? n_axes : static_cast<int64_t>(axes.size());
  for (int64_t i = 0; i < n; ++i) {
    int64_t axis = n_axes >= 0 ? integer_at(axes_data, axes_type, i) : axes[static_cast<size_t>(i)];
    axis = positive_axis(axis, dims.size());
    if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return "an axis is out of range";
    goes[static_cast<size_t>(axis)] = true;
  }
  if (n == 0) goes.fill(!is_noop_without_axes);
  std::array<int64_t, Walk::kMostAxes> strides = {};
  int64_t stride = 1;
  for (size_t axis = dims.size(); axis-- > 0; stride *= dims[axis])
    strides[axis] = stride;
  size_t at = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    (goes[axis] ? inner : outer)->add(dims[axis], strides[axis]);
    if (goes[axis] && !keeps_dims) continue;
    if (at >= result.size() || result[at] != (goes[axis] ? 1 : dims[axis])) {
      return "the axes give another shape than was compiled";
    }
    ++at;
  }
  return at == result.size() ? nullptr : "the axes give another shape than was compiled";
}

const char* Reduce::run(const kernels::Context& context, void* const* pointers) const {
  kernels::ExactReduceArgs args;
  args.kind = kind;
  args.type = type;
  args.src = pointers[0];
  if (const char* why = split(n_axes >= 0 ? pointers[1] : nullptr, &args.outer, &args.inner))
    return why;
  args.dst = pointers[n_axes >= 0 ? 2 : 1];
  kernels::exact_reduce(context, args);
  return nullptr;
}

}  // namespace

std::string refuse_reduce_any(const Graph& graph, const Node& node) {
  if (graph.values[node.inputs[0]].dims.size() > Walk::kMostAxes) return "more than eight axes";
  return is_integer_parameter(graph, node, 1) ? "" : "only i32 and i64 for axes";
}

std::string refuse_sum_to(const Graph& graph, const Node& node) {
  const Dims& from = graph.values[node.inputs[0]].dims;
  const Dims& to = graph.values[node.outputs[0]].dims;
  if (from.size() > Walk::kMostAxes || to.size() > from.size()) return "more than eight axes";
  for (size_t i = 0; i < to.size(); ++i) {
    int64_t extent = from[i + from.size() - to.size()];
    if (to[i] != extent && to[i] != 1) return "shapes that do not broadcast";
  }
  return {};
}

void lower_reduce_any(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& src = graph.values[node.inputs[0]];
  Reduce reduce;
  for (const KindRow& row : kKinds) {
    if (row.op == node.op) reduce.kind = row.kind;
  }
  reduce.type = src.type;
  reduce.dims = src.dims;
  reduce.result = graph.values[node.outputs[0]].dims;
  reduce.axes = node.integers("axes");
  if (node.input(1) != kNone) {
    reduce.axes_type = graph.values[node.inputs[1]].type;
    reduce.n_axes = graph.values[node.inputs[1]].count();
  }
  reduce.keeps_dims = node.integer("keepdims", 1) != 0;
  reduce.is_noop_without_axes = node.integer("noop_with_empty_axes", 0) != 0;
  bool has_slot = node.inputs.size() > 1;  // an absent axes input keeps its place
  lower_dense(lowering, index, "tenon:reduce_any",
              [reduce, has_slot](const kernels::Context& context, void* const* pointers) {
                void* without[] = {pointers[0], pointers[has_slot ? 2 : 1]};
                return reduce.run(context, reduce.n_axes >= 0 ? pointers : without);
              });
  Walk outer, inner;
  const void* axes = reduce.n_axes >= 0 ? graph.values[node.inputs[1]].data : nullptr;
  const bool is_known = reduce.n_axes <= 0 || axes != nullptr;
  // Only axes that are known when it runs can be wrong.
  lowering.plan().steps.back().always_succeeds =
      is_known && reduce.split(axes, &outer, &inner) == nullptr;
}

}  // namespace tenon::onednn
