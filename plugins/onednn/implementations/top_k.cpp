// SPDX-License-Identifier: Apache-2.0
// TopK: a partial sort of the indices of each row. Equal numbers keep the order of their indices;
// NaN counts as the largest.

#include <algorithm>
#include <numeric>

#include "dense.hpp"

namespace tenon::onednn {
namespace {

struct TopK {
  AxisSplit split;
  int64_t k = 0;
  bool wants_largest = true;
  ElementType type = ElementType::kF32;
  ElementType k_type = ElementType::kI64;
};

template <class T>
bool is_above(T a, T b) {
  if constexpr (kernels::kIsReal<T>) {
    if (a != a || b != b) return b == b;
  }
  return a > b;
}

// order: [split.k], the room of this row
template <class T>
void run_row(const TopK& top, const T* src, T* values, int64_t* indices, int64_t* order) {
  const int64_t inner = top.split.inner;
  std::iota(order, order + top.split.k, 0);
  std::partial_sort(order, order + top.k, order + top.split.k, [&](int64_t a, int64_t b) {
    T x = src[a * inner];
    T y = src[b * inner];
    bool is_first = top.wants_largest ? is_above(x, y) : is_above(y, x);
    bool is_second = top.wants_largest ? is_above(y, x) : is_above(x, y);
    return is_first || (!is_second && a < b);
  });
  for (int64_t n = 0; n < top.k; ++n) {
    if (values != nullptr) values[n * inner] = src[order[n] * inner];
    if (indices != nullptr) indices[n * inner] = order[n];
  }
}

const char* run(const TopK& top, const kernels::Context& context, void* const* pointers) {
  if (integer_at(pointers[1], top.k_type, 0) != top.k) return "k is not the one that was compiled";
  const int64_t inner = top.split.inner;
  kernels::visit(top.type, [&]<class T>() {
    kernels::parallel_for(context.parallel, top.split.outer * inner,
                          kernels::grain_rows(top.split.k * 64), [&](int64_t lo, int64_t hi) {
                            for (int64_t i = lo; i < hi; ++i) {
                              int64_t from = i / inner * top.split.k * inner + i % inner;
                              int64_t to = i / inner * top.k * inner + i % inner;
                              T* values = static_cast<T*>(pointers[2]);
                              int64_t* indices = static_cast<int64_t*>(pointers[3]);
                              run_row(top, static_cast<const T*>(pointers[0]) + from,
                                      values == nullptr ? nullptr : values + to,
                                      indices == nullptr ? nullptr : indices + to,
                                      static_cast<int64_t*>(pointers[4]) + i * top.split.k);
                            }
                          });
  });
  return nullptr;
}

}  // namespace

std::string refuse_top_k(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 2) return "expected two results";
  if (graph.values[node.inputs[0]].dims.empty()) return "a scalar";
  if (graph.values[node.inputs[1]].count() != 1) return "only one k";
  return is_integer_parameter(graph, node, 1) ? "" : "only i32 and i64 for k";
}

void lower_top_k(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& src = graph.values[node.inputs[0]];
  int output = node.outputs[0] != kNone ? node.outputs[0] : node.outputs[1];
  int64_t axis = positive_axis(node.integer("axis", -1), src.dims.size());
  TopK top{.split = split_at(src.dims, axis),
           .k = graph.values[output].dims[static_cast<size_t>(axis)],
           .wants_largest = node.integer("largest", 1) != 0,
           .type = src.type,
           .k_type = graph.values[node.inputs[1]].type};
  lower_dense(
      lowering, index, "tenon:top_k",
      [top](const kernels::Context& context, void* const* pointers) {
        return run(top, context, pointers);
      },
      src.count() * 8);
}

}  // namespace tenon::onednn
