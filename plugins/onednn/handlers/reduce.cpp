// SPDX-License-Identifier: Apache-2.0
// Reductions of real numbers. A mean over all spatial axes of channels-last data is a global pool.

#include "kernels/reduce.h"

#include <algorithm>
#include <numeric>

#include "handlers.hpp"
#include "reduce_any.hpp"

namespace tenon::onednn {
namespace {

struct ReduceRow {
  const char* op;
  dnnl::algorithm algorithm;
  float p;
};
constexpr ReduceRow kRows[] = {
    {"ReduceSum", dnnl::algorithm::reduction_sum, 0},
    {"ReduceMean", dnnl::algorithm::reduction_mean, 0},
    {"ReduceMax", dnnl::algorithm::reduction_max, 0},
    {"ReduceMin", dnnl::algorithm::reduction_min, 0},
    {"ReduceProd", dnnl::algorithm::reduction_mul, 0},
    {"ReduceL1", dnnl::algorithm::reduction_norm_lp_sum, 1},
    {"ReduceL2", dnnl::algorithm::reduction_norm_lp_sum, 2},
};

Dims reduced_axes(const Graph& graph, const Node& node) {
  int64_t rank = static_cast<int64_t>(graph.values[node.inputs[0]].dims.size());
  Dims axes = node.integers("axes");
  if (node.input(1) != kNone) {
    const Value& constant = graph.values[node.inputs[1]];
    const int64_t* data = static_cast<const int64_t*>(constant.data);
    axes.assign(data, data + constant.count());
  }
  if (axes.empty() && node.integer("noop_with_empty_axes", 0) == 0) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes)
    axis = axis < 0 ? axis + rank : axis;
  std::sort(axes.begin(), axes.end());
  return axes;
}

struct KernelRow {
  const char* op;
  kernels::Reduction kind;
};
constexpr KernelRow kKernelRows[] = {
    {"ReduceSum", kernels::Reduction::kSum}, {"ReduceMean", kernels::Reduction::kMean},
    {"ReduceMax", kernels::Reduction::kMax}, {"ReduceMin", kernels::Reduction::kMin},
    {"ReduceL1", kernels::Reduction::kL1},   {"ReduceL2", kernels::Reduction::kL2},
};

// One pass of our own kernel over row-major data, when the axes are neighbours: oneDNN's reduction
// falls to its reference code for most shapes.
bool lower_neighbours(Lowering& lowering, const Node& node, const Dims& axes) {
  const KernelRow* row = std::find_if(std::begin(kKernelRows), std::end(kKernelRows),
                                      [&](const KernelRow& r) { return node.op == r.op; });
  if (row == std::end(kKernelRows)) return false;
  if (axes.back() - axes.front() + 1 != static_cast<int64_t>(axes.size())) return false;
  View src = lowering.read_row_major(node.inputs[0], lowering.read_real(node.inputs[0]).type);
  const Value& value = lowering.graph().values[node.outputs[0]];
  kernels::ReduceArgs args;
  args.kind = row->kind;
  args.src.type = src.type;
  args.outer = args.k = args.inner = 1;
  for (int64_t i = 0; i < static_cast<int64_t>(src.dims.size()); ++i) {
    int64_t& extent = i < axes.front() ? args.outer : (i > axes.back() ? args.inner : args.k);
    extent *= src.dims[static_cast<size_t>(i)];
  }
  View dst{.type = lowering.stored_type(node.outputs[0]),
           .dims = value.dims,
           .strides = row_major_strides(value.dims)};
  dst.buffer = lowering.scratch(dst.bytes());
  args.dst.type = dst.type;
  Step step{.name = node.name, .kernel = "tenon:reduce"};
  step.flops = static_cast<double>(src.count());
  step.bytes = static_cast<double>(src.bytes() + dst.bytes());
  step.places = {place_of(src), place_of(dst)};
  step.kernel_function = [args](const kernels::Context& context,
                                void* const* pointers) -> const char* {
    kernels::ReduceArgs call = args;
    call.src.data = pointers[0];
    call.dst.data = pointers[1];
    kernels::reduce(context, call);
    return nullptr;
  };
  lowering.add_step(std::move(step));
  lowering.set_view(node.outputs[0], dst);
  return true;
}

}  // namespace

// What the fast kernels take; the rest is reduce_any's.
static bool is_fast(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.type != ElementType::kF32 || src.dims.empty() || src.dims.size() > 6) return false;
  if (src.count() == 0) return false;
  if (node.input(1) != kNone && (graph.values[node.inputs[1]].data == nullptr ||
                                 graph.values[node.inputs[1]].type != ElementType::kI64)) {
    return false;
  }
  bool is_known = std::any_of(std::begin(kRows), std::end(kRows),
                              [&](const ReduceRow& row) { return node.op == row.op; });
  Dims axes = reduced_axes(graph, node);
  return is_known &&
         std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return src.dims[a] > 1; });
}

std::string refuse_reduce(const Graph& graph, const Node& node) {
  return refuse_reduce_any(graph, node);
}

void lower_reduce(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  if (!is_fast(lowering.graph(), node)) return lower_reduce_any(lowering, index);
  const Value& value = lowering.graph().values[node.outputs[0]];
  const View& found = lowering.view(node.inputs[0]);
  Dims axes = reduced_axes(lowering.graph(), node);
  Dims spatial(found.dims.size() > 2 ? found.dims.size() - 2 : 0);
  std::iota(spatial.begin(), spatial.end(), 2);
  bool is_pool = node.op == "ReduceMean" && !spatial.empty() && spatial.size() <= 3 &&
                 axes == spatial && is_channels_last(found) && !is_row_major(found);
  if (is_pool) return lower_global_pool(lowering, index);
  if (lower_neighbours(lowering, node, axes)) return;
  View src = lowering.read_real(node.inputs[0]);
  Dims dims = src.dims;
  for (int64_t axis : axes)
    dims[axis] = 1;
  View dst{.type = lowering.stored_type(node.outputs[0]),
           .dims = dims,
           .strides = dense_strides_like(dims, src.strides)};
  dst.buffer = lowering.scratch(dst.bytes());
  const ReduceRow* row = std::find_if(std::begin(kRows), std::end(kRows),
                                      [&](const ReduceRow& r) { return node.op == r.op; });
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::memory::desc src_desc = descriptor(src);
  dnnl::memory::desc dst_desc = descriptor(dst);
  dnnl::reduction::primitive_desc pd(lowering.engine(), row->algorithm, src_desc, dst_desc, row->p,
                                     0.0F, attr);
  lowering.add_primitive(
      node.name, pd.impl_info_str(), dnnl::reduction(pd), pd.scratchpad_desc(),
      {{DNNL_ARG_SRC, place_of(src), src_desc}, {DNNL_ARG_DST, place_of(dst), dst_desc}},
      static_cast<double>(src.count()));
  if (dims.size() != value.dims.size()) {
    dst.strides = row_major_strides(value.dims);
    bool stays_in_order =
        is_row_major({.dims = dims, .strides = dense_strides_like(dims, src.strides)});
    if (!stays_in_order) {
      View ordered{.type = dst.type, .dims = dims, .strides = row_major_strides(dims)};
      ordered.buffer = lowering.scratch(ordered.bytes());
      View from = dst;
      from.dims = dims;
      from.strides = dense_strides_like(dims, src.strides);
      lowering.add_copy("reorder " + node.name, from, ordered);
      dst.buffer = ordered.buffer;
    }
  }
  dst.dims = value.dims;
  lowering.set_view(node.outputs[0], dst);
}

}  // namespace tenon::onednn
