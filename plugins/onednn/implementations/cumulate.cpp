// SPDX-License-Identifier: Apache-2.0
// CumSum and CumProd, in the type's own integers or in f64. The axis is a tensor.

#include "kernels/cumulate.h"

#include <algorithm>

#include "tenon/wrapping.hpp"

#include "dense.hpp"

namespace tenon::onednn {
namespace {

struct Cumulate {
  Dims dims;
  ElementType type = ElementType::kF32;
  ElementType axis_type = ElementType::kI64;
  bool is_product = false;
  bool is_exclusive = false;
  bool is_reverse = false;
};

constexpr int64_t kColumns = 256;  // neighbours along the axes behind, which are added at once

// Up to kColumns columns from `src` on, `inner` apart from row to row.
template <class T>
void run_columns(const Cumulate& c, const AxisSplit& split, int64_t n, const T* src, T* dst) {
  using Sum = std::conditional_t<kernels::kIsReal<T>, double, int64_t>;
  Sum totals[kColumns];
  std::fill_n(totals, n, c.is_product ? Sum(1) : Sum(0));
  for (int64_t k = 0; k < split.k; ++k) {
    const int64_t at = (c.is_reverse ? split.k - 1 - k : k) * split.inner;
    for (int64_t i = 0; i < n; ++i) {
      const Sum number = kernels::number_cast<Sum>(src[at + i]);
      const Sum before = totals[i];
      totals[i] = c.is_product ? wrapping_mul(before, number) : wrapping_add(before, number);
      dst[at + i] = kernels::number_cast<T>(c.is_exclusive ? before : totals[i]);
    }
  }
}

const char* run(const Cumulate& c, const kernels::Context& context, void* const* pointers) {
  int64_t rank = static_cast<int64_t>(c.dims.size());
  int64_t axis = positive_axis(integer_at(pointers[1], c.axis_type, 0), c.dims.size());
  if (axis < 0 || axis >= rank) return "the axis is outside of the tensor's axes";
  const AxisSplit split = split_at(c.dims, axis);
  if (c.type == ElementType::kF32) {
    kernels::cumulate(
        context, {static_cast<const float*>(pointers[0]), static_cast<float*>(pointers[2]),
                  split.outer, split.k, split.inner, c.is_product, c.is_exclusive, c.is_reverse});
    return nullptr;
  }
  const int64_t n_blocks = (split.inner + kColumns - 1) / kColumns;
  const int64_t widest = std::min(split.inner, kColumns);
  kernels::visit(c.type, [&]<class T>() {
    kernels::parallel_for(context.parallel, split.outer * n_blocks,
                          kernels::grain_rows(split.k * widest * static_cast<int64_t>(sizeof(T))),
                          [&](int64_t lo, int64_t hi) {
                            for (int64_t block = lo; block < hi; ++block) {
                              const int64_t first = block % n_blocks * kColumns;
                              const int64_t at = block / n_blocks * split.k * split.inner + first;
                              run_columns(c, split, std::min(kColumns, split.inner - first),
                                          static_cast<const T*>(pointers[0]) + at,
                                          static_cast<T*>(pointers[2]) + at);
                            }
                          });
  });
  return nullptr;
}

}  // namespace

std::string refuse_cumulate(const Graph& graph, const Node& node) {
  if (graph.values[node.inputs[0]].dims.empty()) return "a scalar";
  return is_integer_parameter(graph, node, 1) ? "" : "only i32 and i64 for the axis";
}

void lower_cumulate(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const Value& src = lowering.graph().values[node.inputs[0]];
  Cumulate c{.dims = src.dims,
             .type = src.type,
             .axis_type = lowering.graph().values[node.inputs[1]].type,
             .is_product = node.op == "CumProd",
             .is_exclusive = node.integer("exclusive", 0) != 0,
             .is_reverse = node.integer("reverse", 0) != 0};
  lower_dense(lowering, index, "tenon:cumulate",
              [c](const kernels::Context& context, void* const* pointers) {
                return run(c, context, pointers);
              });
}

}  // namespace tenon::onednn
