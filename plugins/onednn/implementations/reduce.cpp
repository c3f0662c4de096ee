// SPDX-License-Identifier: Apache-2.0
// Reductions of floating-point numbers. A mean over all spatial axes of channels-last data is a
// global pool.

#include "kernels/reduce.h"

#include <algorithm>
#include <numeric>

#include "choice.hpp"
#include "graph/reductions.hpp"
#include "handlers.hpp"
#include "lists.hpp"
#include "lowering/row_group.hpp"
#include "reduce.hpp"
#include "reduce_any.hpp"

namespace tenon::onednn {
namespace {

// Axes of a dense view that lie beside each other in memory and are all reduced, or all kept.
struct Run {
  int64_t extent = 1;
  bool is_reduced = false;
};

// Outermost first; axes of extent 1 are nowhere.
std::vector<Run> runs_in_memory(const View& view, const Dims& axes) {
  std::vector<size_t> order;
  for (size_t axis = 0; axis < view.dims.size(); ++axis)
    if (view.dims[axis] != 1) order.push_back(axis);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return view.strides[a] > view.strides[b]; });
  std::vector<Run> runs;
  for (size_t axis : order) {
    bool is_reduced = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(axis));
    if (runs.empty() || runs.back().is_reduced != is_reduced) runs.push_back({1, is_reduced});
    runs.back().extent *= view.dims[axis];
  }
  return runs;
}

struct Pass {  // over [outer, k, inner]
  int64_t outer, k, inner;
};

// A long sum with few results is cut into `chunks` sums for the threads, and then those are summed:
// by the shape alone, so that the result does not depend on how many threads there are.
int64_t chunks_of(const Pass& pass) {
  constexpr int64_t kWorthIt = 1 << 16;
  constexpr int64_t kMost = 64;
  constexpr int64_t kEnough = 16;
  int64_t pieces = pass.outer * ((pass.inner + kernels::kReduceBlock - 1) / kernels::kReduceBlock);
  if (pieces >= kEnough || pass.k * pass.inner < kWorthIt) return 1;
  for (int64_t chunks = kMost; chunks > 1; --chunks)
    if (pass.k % chunks == 0) return chunks;
  return 1;
}

// One pass for each reduced run, innermost first.
std::vector<Pass> passes_over(std::vector<Run> runs, kernels::Reduction kind) {
  std::vector<Pass> passes;
  for (size_t i = runs.size(); i-- > 0;) {
    if (!runs[i].is_reduced) continue;
    Pass pass{1, runs[i].extent, 1};
    for (size_t j = 0; j < runs.size(); ++j)
      (j < i ? pass.outer : pass.inner) *= j == i ? 1 : runs[j].extent;
    runs[i].extent = 1;
    // A part of a product may be beyond f32 where the product is not.
    int64_t chunks = kind == kernels::Reduction::kProduct ? 1 : chunks_of(pass);
    if (chunks > 1) {
      passes.push_back({pass.outer * chunks, pass.k / chunks, pass.inner});
      pass.k = chunks;
    }
    passes.push_back(pass);
  }
  return passes;
}

void add_pass(Lowering& lowering,
              const std::string& name,
              kernels::Reduction kind,
              const Pass& pass,
              const View& src,
              const View& dst) {
  kernels::ReduceArgs args{.kind = kind, .outer = pass.outer, .k = pass.k, .inner = pass.inner};
  args.src.type = src.type;
  args.dst.type = dst.type;
  lowering.add_step(reduce_step(name, args, src, dst));
}

// What is left of the view: reduced axes have extent 1, or are dropped as in `dims`.
View reduced_view(const View& src, const Dims& axes, const Dims& dims) {
  View left{.dims = src.dims};
  for (int64_t axis : axes)
    left.dims[static_cast<size_t>(axis)] = 1;
  left.strides = dense_strides_like(left.dims, src.strides);
  if (left.dims.size() != dims.size()) {
    for (size_t i = axes.size(); i-- > 0;) {
      left.dims.erase(left.dims.begin() + axes[i]);
      left.strides.erase(left.strides.begin() + axes[i]);
    }
  }
  return left;
}

struct ReduceSite {
  Lowering& lowering;
  int index;
  Dims axes = {};
  std::function<void()> rows = {};  // with a later node that reads them

  const Node& node() const { return lowering.graph().nodes[index]; }
};

// What a pass reads: the source as it lies, dense.
View planned_source(const Lowering& lowering, int value) {
  View planned = lowering.view(value);
  if (!is_real_type(planned.type)) {
    planned.type = lowering.real_type();
    planned.strides = dense_strides_like(planned.dims, planned.strides);
  }
  if (!is_dense(planned)) planned.strides = row_major_strides(planned.dims);
  return planned;
}

void lower_by_passes(const ReduceSite& site,
                     kernels::Reduction kind,
                     const std::vector<Pass>& passes) {
  Lowering& lowering = site.lowering;
  const Node& node = site.node();
  const View planned = planned_source(lowering, node.inputs[0]);
  View src = lowering.read(node.inputs[0], planned.type, planned.strides);
  View dst = reduced_view(src, site.axes, lowering.graph().values[node.outputs[0]].dims);
  for (size_t i = 0; i < passes.size(); ++i) {
    bool is_last = i + 1 == passes.size();
    View made = dst;
    made.type = is_last ? lowering.stored_type(node.outputs[0]) : ElementType::kF32;
    if (!is_last) made.dims = {passes[i].outer * passes[i].inner};
    made.buffer = lowering.scratch(made.bytes());
    add_pass(lowering, node.name, kind, passes[i], src, made);
    // The norm of norms is that of all.
    if (kind == kernels::Reduction::kL1 || kind == kernels::Reduction::kSumSquare)
      kind = kernels::Reduction::kSum;
    src = made;
  }
  lowering.set_view(node.outputs[0], src);
}

Offer offer_rows(const ReduceSite& site) {
  if (!site.rows) return refused("no later node reads rows together with what they reduce to");
  return accepted(site.rows);
}

Offer offer_pool(const ReduceSite& site) {
  const View& found = site.lowering.view(site.node().inputs[0]);
  Dims spatial(found.dims.size() > 2 ? found.dims.size() - 2 : 0);
  std::iota(spatial.begin(), spatial.end(), 2);
  const bool is_mean = site.node().op == "ReduceMean" && !spatial.empty() && spatial.size() <= 3 &&
                       site.axes == spatial;
  if (!is_mean) return refused("not a mean over all spatial axes");
  if (!is_channels_last(found) || is_row_major(found))
    return refused("the source is not channels-last");
  return accepted([&site] { lower_global_pool(site.lowering, site.index); });
}

// Of our own kernel over memory as it lies: oneDNN's reduction falls to its reference code, which
// adds one float after the other, for most shapes.
Offer offer_passes(const ReduceSite& site) {
  const View src = planned_source(site.lowering, site.node().inputs[0]);
  const kernels::Reduction kind = *kernel_reduction(site.node());
  std::vector<Pass> passes = passes_over(runs_in_memory(src, site.axes), kind);
  return accepted(
      [&site, kind, passes = std::move(passes)] { lower_by_passes(site, kind, passes); });
}

Offer offer_any(const ReduceSite& site) {
  return accepted([&site] { lower_reduce_any(site.lowering, site.index); });
}

constexpr Implementation<ReduceSite> kReduce[] = {
    {"rows with their reduction", offer_rows},
    {"global pool", offer_pool},
    {"passes", offer_passes},
};
// Of other types than f32, over axes that are known when it runs.
constexpr Implementation<ReduceSite> kReduceAny[] = {{"any type and axes", offer_any}};

}  // namespace

Names reduce_names() {
  return names_of(kReduce);
}

Names reduce_any_names() {
  return names_of(kReduceAny);
}

Step reduce_step(const std::string& name,
                 const kernels::ReduceArgs& args,
                 const View& src,
                 const View& dst) {
  Step step{.name = name, .kernel = "tenon:reduce", .always_succeeds = true};
  step.flops = static_cast<double>(args.outer * args.k * args.inner);
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
  return step;
}

// What the fast kernels take; the rest is reduce_any's.
static bool is_fast(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.type != ElementType::kF32 || src.dims.empty() || src.dims.size() > 6) return false;
  if (src.count() == 0) return false;
  if (node.input(1) != kNone && (graph.values[node.inputs[1]].data == nullptr ||
                                 graph.values[node.inputs[1]].type != ElementType::kI64)) {
    return false;
  }
  Dims axes = reduced_axes(graph, node);
  return kernel_reduction(node).has_value() &&
         std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return src.dims[a] > 1; });
}

std::string refuse_reduce(const Graph& graph, const Node& node) {
  return refuse_reduce_any(graph, node);
}

void lower_reduce(Lowering& lowering, int index) {
  ReduceSite site{lowering, index};
  if (!is_fast(lowering.graph(), site.node()))
    return choose<ReduceSite>(lowering, site, kReduceAny);
  site.rows = find_row_group(lowering, index);
  site.axes = reduced_axes(lowering.graph(), site.node());
  choose<ReduceSite>(lowering, site, kReduce);
}

}  // namespace tenon::onednn
