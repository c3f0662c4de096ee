// SPDX-License-Identifier: Apache-2.0
// ScatterElements and ScatterND: a copy of the data where it is still needed, then each update at
// its place, in order.

#include <cstring>

#include "tenon/wrapping.hpp"

#include "dense.hpp"

namespace tenon::onednn {
namespace {

enum class Join : uint8_t { kNone, kAdd, kMul, kMax, kMin };

struct Scatter {
  Dims dims;
  Dims strides;
  Dims index_dims;
  ElementType type = ElementType::kF32;
  ElementType index_type = ElementType::kI64;
  Join join = Join::kNone;
  int64_t axis = 0;  // ScatterElements
};

template <class T>
T joined(Join join, T old, T update) {
  using A = std::conditional_t<kernels::kIsReal<T>, double, int64_t>;
  A a = kernels::number_cast<A>(old);
  A b = kernels::number_cast<A>(update);
  switch (join) {
    case Join::kAdd:  // integers wrap around
      return kernels::number_cast<T>(wrapping_add(a, b));
    case Join::kMul:
      return kernels::number_cast<T>(wrapping_mul(a, b));
    case Join::kMax:
      return b > a || b != b ? update : old;
    case Join::kMin:
      return b < a || b != b ? update : old;
    default:
      return update;
  }
}

template <class T>
const char* scatter_elements(const Scatter& s, const void* indices, const T* updates, T* out) {
  int64_t count = element_count(s.index_dims);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    int64_t rest = i;
    for (size_t axis = s.index_dims.size(); axis-- > 0; rest /= s.index_dims[axis]) {
      int64_t place = rest % s.index_dims[axis];
      if (static_cast<int64_t>(axis) == s.axis) {
        place = integer_at(indices, s.index_type, i);
        if (!resolve_index(&place, s.dims[axis])) return outside_text();
      }
      at += place * s.strides[axis];
    }
    out[at] = joined(s.join, out[at], updates[i]);
  }
  return nullptr;
}

template <class T>
const char* scatter_nd(const Scatter& s, const void* indices, const T* updates, T* out) {
  size_t depth = static_cast<size_t>(s.index_dims.back());
  int64_t tuples = element_count(s.index_dims) / std::max<int64_t>(1, s.index_dims.back());
  int64_t run = 1;
  for (size_t axis = depth; axis < s.dims.size(); ++axis)
    run *= s.dims[axis];
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t at = 0;
    for (size_t axis = 0; axis < depth; ++axis) {
      int64_t place =
          integer_at(indices, s.index_type, t * s.index_dims.back() + static_cast<int64_t>(axis));
      if (!resolve_index(&place, s.dims[axis])) return outside_text();
      at += place * s.strides[axis];
    }
    for (int64_t i = 0; i < run; ++i)
      out[at + i] = joined(s.join, out[at + i], updates[t * run + i]);
  }
  return nullptr;
}

Join join_of(const Node& node) {
  constexpr std::pair<std::string_view, Join> kJoins[] = {
      {"add", Join::kAdd}, {"mul", Join::kMul}, {"max", Join::kMax}, {"min", Join::kMin}};
  std::string name = node.text("reduction", "none");
  for (const auto& [text, join] : kJoins) {
    if (name == text) return join;
  }
  return Join::kNone;
}

}  // namespace

std::string refuse_scatter(const Graph& graph, const Node& node) {
  const Dims& dims = graph.values[node.inputs[0]].dims;
  const Dims& indices = graph.values[node.inputs[1]].dims;
  const Dims& updates = graph.values[node.inputs[2]].dims;
  if (!is_integer_parameter(graph, node, 1)) return "only i32 and i64 for indices";
  if (node.op == "ScatterElements") {
    if (dims.empty() || indices.size() != dims.size() || indices != updates) {
      return "indices of another rank or shape";
    }
    int64_t axis = positive_axis(node.integer("axis", 0), dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      if (static_cast<int64_t>(i) != axis && indices[i] > dims[i]) return "indices do not fit";
    }
    return {};
  }
  if (indices.empty() || indices.back() < 1 || indices.back() > static_cast<int64_t>(dims.size())) {
    return "tuples of no or too many indices";
  }
  Dims expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), dims.begin() + indices.back(), dims.end());
  return updates == expected ? "" : "updates of another shape";
}

void lower_scatter(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& src = graph.values[node.inputs[0]];
  Scatter s{.dims = src.dims,
            .strides = row_major_strides(src.dims),
            .index_dims = graph.values[node.inputs[1]].dims,
            .type = src.type,
            .index_type = graph.values[node.inputs[1]].type,
            .join = join_of(node),
            .axis = positive_axis(node.integer("axis", 0), src.dims.size())};
  bool by_tuples = node.op == "ScatterND";
  size_t bytes = static_cast<size_t>(src.bytes());
  auto run = [s, by_tuples, bytes](const kernels::Context&, void* const* pointers) {
    if (pointers[3] != pointers[0]) std::memcpy(pointers[3], pointers[0], bytes);
    return kernels::visit(s.type, [&]<class T>() -> const char* {
      const T* updates = static_cast<const T*>(pointers[2]);
      T* out = static_cast<T*>(pointers[3]);
      return by_tuples ? scatter_nd(s, pointers[1], updates, out)
                       : scatter_elements(s, pointers[1], updates, out);
    });
  };
  lower_dense(lowering, index, "tenon:scatter", run, 0, FirstOutput::kOverFirstInput);
}

}  // namespace tenon::onednn
