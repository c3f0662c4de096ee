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

// Numbers of T are joined as these.
template <class T>
using SumOf = std::conditional_t<kernels::kIsReal<T>, double, int64_t>;

template <bool kIsProduct, class Sum>
Sum joined(Sum before, Sum number) {
  if constexpr (kIsProduct)
    return wrapping_mul(before, number);
  else
    return wrapping_add(before, number);
}

// One column: its total stays in a register.
template <bool kIsProduct, bool kIsExclusive, class T>
void run_column(int64_t k, int64_t step, const T* src, T* dst) {
  SumOf<T> total = kIsProduct ? 1 : 0;
  for (int64_t left = k; left > 0; --left, src += step, dst += step) {
    const SumOf<T> before = total;
    total = joined<kIsProduct>(before, kernels::number_cast<SumOf<T>>(*src));
    *dst = kernels::number_cast<T>(kIsExclusive ? before : total);
  }
}

// Up to kColumns columns, whose numbers lie side by side.
template <bool kIsProduct, bool kIsExclusive, class T>
void run_columns(int64_t k, int64_t step, int64_t n, const T* src, T* dst) {
  if (n == 1) return run_column<kIsProduct, kIsExclusive>(k, step, src, dst);
  SumOf<T> totals[kColumns];
  std::fill_n(totals, n, kIsProduct ? SumOf<T>(1) : SumOf<T>(0));
  for (int64_t left = k; left > 0; --left, src += step, dst += step) {
    for (int64_t i = 0; i < n; ++i) {
      const SumOf<T> before = totals[i];
      totals[i] = joined<kIsProduct>(before, kernels::number_cast<SumOf<T>>(src[i]));
      dst[i] = kernels::number_cast<T>(kIsExclusive ? before : totals[i]);
    }
  }
}

template <class T>
auto columns_of(const Cumulate& c) {
  if (c.is_product)
    return c.is_exclusive ? run_columns<true, true, T> : run_columns<true, false, T>;
  return c.is_exclusive ? run_columns<false, true, T> : run_columns<false, false, T>;
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
  const int64_t step = c.is_reverse ? -split.inner : split.inner;  // to the next row
  kernels::visit(c.type, [&]<class T>() {
    const T* src = static_cast<const T*>(pointers[0]);
    T* dst = static_cast<T*>(pointers[2]);
    kernels::parallel_for(context.parallel, split.outer * n_blocks,
                          kernels::grain_rows(split.k * widest * static_cast<int64_t>(sizeof(T))),
                          [&, add_columns = columns_of<T>(c)](int64_t lo, int64_t hi) {
                            for (int64_t block = lo; block < hi; ++block) {
                              const int64_t column = block % n_blocks * kColumns;
                              const int64_t at = block / n_blocks * split.k * split.inner + column +
                                                 (c.is_reverse ? (split.k - 1) * split.inner : 0);
                              add_columns(split.k, step, std::min(kColumns, split.inner - column),
                                          src + at, dst + at);
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
