// SPDX-License-Identifier: Apache-2.0
// Tensors with a pattern: Trilu, EyeLike, OneHot, Range.

#include <cstring>

#include "dense.hpp"

namespace tenon::onednn {

std::string refuse_trilu(const Graph& graph, const Node& node) {
  if (graph.values[node.inputs[0]].dims.size() < 2) return "fewer than two axes";
  return is_integer_parameter(graph, node, 1) ? "" : "only i32 and i64 for k";
}

void lower_trilu(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& src = graph.values[node.inputs[0]];
  const int64_t columns = src.dims.back();
  const int64_t rows = src.dims[src.dims.size() - 2];
  const int64_t n = src.count() / columns;
  const int64_t bytes = kernels::element_bytes(src.type);
  const bool is_upper = node.integer("upper", 1) != 0;
  const bool has_k = node.input(1) != kNone;
  const ElementType k_type = has_k ? graph.values[node.inputs[1]].type : ElementType::kI64;
  const size_t out = node.inputs.size();
  lower_dense(
      lowering, index, "tenon:trilu",
      [=](const kernels::Context& context, void* const* pointers) -> const char* {
        int64_t k = has_k ? integer_at(pointers[1], k_type, 0) : 0;
        const char* from = static_cast<const char*>(pointers[0]);
        char* to = static_cast<char*>(pointers[out]);
        kernels::parallel_for(
            context.parallel, n, kernels::grain_rows(columns * bytes), [&](int64_t lo, int64_t hi) {
              for (int64_t row = lo; row < hi; ++row) {
                // [begin, end): the columns that stay
                int64_t edge = std::clamp<int64_t>(
                    std::clamp(k, -rows - 1, columns + 1) + row % rows + !is_upper, 0, columns);
                int64_t begin = is_upper ? edge : 0;
                int64_t end = is_upper ? columns : edge;
                char* line = to + row * columns * bytes;
                std::memset(line, 0, static_cast<size_t>(columns * bytes));
                std::memcpy(line + begin * bytes, from + (row * columns + begin) * bytes,
                            static_cast<size_t>((end - begin) * bytes));
              }
            });
        return nullptr;
      });
}

std::string refuse_eye_like(const Graph& graph, const Node& node) {
  return graph.values[node.inputs[0]].dims.size() == 2 ? "" : "only two axes";
}

void lower_eye_like(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& value = graph.values[node.outputs[0]];
  const int64_t k =
      std::clamp<int64_t>(node.integer("k", 0), -value.dims[0], value.dims[1]);  // none beyond
  lower_dense(lowering, index, "tenon:eye_like",
              [k, dims = value.dims, type = value.type, bytes = value.bytes()](
                  const kernels::Context&, void* const* pointers) -> const char* {
                std::memset(pointers[1], 0, static_cast<size_t>(bytes));
                kernels::visit(type, [&]<class T>() {
                  T* out = static_cast<T*>(pointers[1]);
                  const int64_t first = std::max<int64_t>(0, -k);
                  const int64_t end = std::min(dims[0], dims[1] - k);
                  for (int64_t row = first; row < end; ++row)
                    out[row * dims[1] + row + k] = kernels::number_cast<T>(1);
                });
                return nullptr;
              });
}

std::string refuse_one_hot(const Graph& graph, const Node& node) {
  if (graph.values[node.inputs[1]].count() != 1) return "only one depth";
  if (graph.values[node.inputs[2]].count() != 2) return "expected an off and an on value";
  return {};
}

void lower_one_hot(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& value = graph.values[node.outputs[0]];
  const Value& indices = graph.values[node.inputs[0]];
  const ElementType depth_type = graph.values[node.inputs[1]].type;
  const ElementType index_type = indices.type;
  const ElementType type = value.type;
  AxisSplit split =
      split_at(value.dims, positive_axis(node.integer("axis", -1), value.dims.size()));
  lower_dense(
      lowering, index, "tenon:one_hot",
      [=](const kernels::Context&, void* const* pointers) -> const char* {
        int64_t depth = kernels::visit(depth_type, [&]<class T>() {
          return kernels::number_cast<int64_t>(*static_cast<const T*>(pointers[1]));
        });
        if (depth != split.k) return "the depth is not the one that was compiled";
        kernels::visit(type, [&]<class T>() {
          const T* values = static_cast<const T*>(pointers[2]);
          T* out = static_cast<T*>(pointers[3]);
          std::fill_n(out, split.outer * split.k * split.inner, values[0]);
          kernels::visit(index_type, [&]<class I>() {
            for (int64_t i = 0; i < split.outer * split.inner; ++i) {
              int64_t at = kernels::number_cast<int64_t>(static_cast<const I*>(pointers[0])[i]);
              if (at < 0) at += split.k;
              if (at < 0 || at >= split.k) continue;
              out[(i / split.inner * split.k + at) * split.inner + i % split.inner] = values[1];
            }
          });
        });
        return nullptr;
      });
}

std::string refuse_range(const Graph& graph, const Node& node) {
  for (int input : node.inputs) {
    if (input == kNone || graph.values[input].count() != 1) return "expected three scalars";
  }
  return node.inputs.size() == 3 ? "" : "expected three scalars";
}

// As the row of Range counts: integers exactly.
template <class A>
bool has_length(A start, A limit, A step, int64_t n) {
  if constexpr (std::is_integral_v<A>) {
    auto bits = [](A x) { return static_cast<uint64_t>(x); };
    bool is_up = step > 0;
    if (is_up ? start >= limit : start <= limit) return n == 0;
    uint64_t way = is_up ? bits(limit) - bits(start) : bits(start) - bits(limit);
    uint64_t each = is_up ? bits(step) : 0 - bits(step);
    return way / each + (way % each != 0) == static_cast<uint64_t>(n);
  } else {
    return std::fmax(0, std::ceil((limit - start) / step)) == static_cast<double>(n);
  }
}

void lower_range(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& value = graph.values[node.outputs[0]];
  const int64_t n = value.count();
  lower_dense(lowering, index, "tenon:range",
              [n, type = value.type](const kernels::Context&, void* const* pointers) {
                return kernels::visit(type, [&]<class T>() -> const char* {
                  using A = std::conditional_t<kernels::kIsReal<T>, double, int64_t>;
                  A start = kernels::number_cast<A>(*static_cast<const T*>(pointers[0]));
                  A limit = kernels::number_cast<A>(*static_cast<const T*>(pointers[1]));
                  A step = kernels::number_cast<A>(*static_cast<const T*>(pointers[2]));
                  if (step == A(0)) return "the step is 0";
                  if (!has_length(start, limit, step, n)) return "the range has another length";
                  for (int64_t i = 0; i < n; ++i) {
                    static_cast<T*>(pointers[3])[i] =
                        kernels::number_cast<T>(start + static_cast<A>(i) * step);
                  }
                  return nullptr;
                });
              });
}

}  // namespace tenon::onednn
