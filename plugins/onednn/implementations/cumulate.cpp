// SPDX-License-Identifier: Apache-2.0
// CumSum and CumProd, in the type's own integers or in f64. The axis is a tensor.

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

template <class T>
void run_row(const Cumulate& c, const AxisSplit& split, const T* src, T* dst) {
  using Sum = std::conditional_t<kernels::kIsReal<T>, double, int64_t>;
  Sum total = c.is_product ? Sum(1) : Sum(0);
  for (int64_t k = 0; k < split.k; ++k) {
    int64_t at = (c.is_reverse ? split.k - 1 - k : k) * split.inner;
    Sum number = kernels::number_cast<Sum>(src[at]);
    if (c.is_exclusive) dst[at] = kernels::number_cast<T>(total);
    total = c.is_product ? wrapping_mul(total, number) : wrapping_add(total, number);
    if (!c.is_exclusive) dst[at] = kernels::number_cast<T>(total);
  }
}

const char* run(const Cumulate& c, const kernels::Context& context, void* const* pointers) {
  int64_t rank = static_cast<int64_t>(c.dims.size());
  int64_t axis = positive_axis(integer_at(pointers[1], c.axis_type, 0), c.dims.size());
  if (axis < 0 || axis >= rank) return "the axis is outside of the tensor's axes";
  AxisSplit split = split_at(c.dims, axis);
  kernels::visit(c.type, [&]<class T>() {
    kernels::parallel_for(context.parallel, split.outer * split.inner,
                          kernels::grain_rows(split.k * static_cast<int64_t>(sizeof(T))),
                          [&](int64_t lo, int64_t hi) {
                            for (int64_t i = lo; i < hi; ++i) {
                              int64_t at =
                                  i / split.inner * split.k * split.inner + i % split.inner;
                              run_row(c, split, static_cast<const T*>(pointers[0]) + at,
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
