// SPDX-License-Identifier: Apache-2.0
// GatherElements and GatherND: each result element, or run of elements, from its own place.

#include <cstring>

#include "dense.hpp"

namespace tenon::onednn {
namespace {

struct Places {
  Dims dims;
  Dims strides;
  Dims index_dims;
  ElementType index_type = ElementType::kI64;
  int64_t axis = 0;       // GatherElements
  size_t batch_dims = 0;  // GatherND
  int64_t run_bytes = 1;  // moved as one
  int64_t element_bytes = 1;
};

// The byte offset of each run; -1: outside.
int64_t element_place(const Places& p, const void* indices, int64_t i) {
  int64_t at = 0;
  int64_t rest = i;
  for (size_t axis = p.index_dims.size(); axis-- > 0; rest /= p.index_dims[axis]) {
    int64_t place = rest % p.index_dims[axis];
    if (static_cast<int64_t>(axis) == p.axis) {
      place = integer_at(indices, p.index_type, i);
      if (!resolve_index(&place, p.dims[axis])) return -1;
    }
    at += place * p.strides[axis];
  }
  return at * p.element_bytes;
}

int64_t tuple_place(const Places& p, const void* indices, int64_t i) {
  int64_t at = 0;
  int64_t rest = i;
  for (size_t axis = p.index_dims.size() - 1; axis-- > 0; rest /= p.index_dims[axis]) {
    if (axis < p.batch_dims) at += rest % p.index_dims[axis] * p.strides[axis];
  }
  int64_t depth = p.index_dims.back();
  for (int64_t k = 0; k < depth; ++k) {
    size_t axis = p.batch_dims + static_cast<size_t>(k);
    int64_t place = integer_at(indices, p.index_type, i * depth + k);
    if (!resolve_index(&place, p.dims[axis])) return -1;
    at += place * p.strides[axis];
  }
  return at * p.element_bytes;
}

template <class F>
const char* gather(const Places& p, int64_t n, void* const* pointers, const F& place) {
  const char* src = static_cast<const char*>(pointers[0]);
  char* dst = static_cast<char*>(pointers[2]);
  for (int64_t i = 0; i < n; ++i) {
    int64_t from = place(p, pointers[1], i);
    if (from < 0) return outside_text();
    std::memcpy(dst + i * p.run_bytes, src + from, static_cast<size_t>(p.run_bytes));
  }
  return nullptr;
}

Places places_of(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  Places p{.dims = src.dims,
           .strides = row_major_strides(src.dims),
           .index_dims = graph.values[node.inputs[1]].dims,
           .index_type = graph.values[node.inputs[1]].type,
           .axis = positive_axis(node.integer("axis", 0), src.dims.size()),
           .batch_dims = static_cast<size_t>(node.integer("batch_dims", 0)),
           .element_bytes = kernels::element_bytes(src.type)};
  p.run_bytes = p.element_bytes;
  return p;
}

}  // namespace

std::string refuse_gather_places(const Graph& graph, const Node& node) {
  const Dims& dims = graph.values[node.inputs[0]].dims;
  const Dims& indices = graph.values[node.inputs[1]].dims;
  if (!is_integer_parameter(graph, node, 1)) return "only i32 and i64 for indices";
  if (node.op == "GatherElements") {
    if (dims.size() != indices.size() || dims.empty()) return "indices of another rank";
    int64_t axis = positive_axis(node.integer("axis", 0), dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      if (static_cast<int64_t>(i) != axis && indices[i] > dims[i]) return "indices do not fit";
    }
    return {};
  }
  int64_t batch = node.integer("batch_dims", 0);
  bool fits = !indices.empty() && batch >= 0 && batch < static_cast<int64_t>(indices.size()) &&
              indices.back() >= 1 && indices.back() + batch <= static_cast<int64_t>(dims.size());
  for (int64_t i = 0; fits && i < batch; ++i)
    fits = indices[static_cast<size_t>(i)] == dims[static_cast<size_t>(i)];
  return fits ? "" : "tuples of no or too many indices";
}

void lower_gather_places(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  Places p = places_of(graph, node);
  int64_t count = element_count(p.index_dims);
  if (node.op == "GatherElements") {
    return lower_dense(lowering, index, "tenon:gather_elements",
                       [p, count](const kernels::Context&, void* const* pointers) {
                         return gather(p, count, pointers, element_place);
                       });
  }
  for (size_t axis = p.batch_dims + static_cast<size_t>(p.index_dims.back()); axis < p.dims.size();
       ++axis) {
    p.run_bytes *= p.dims[axis];
  }
  int64_t n = count / p.index_dims.back();
  lower_dense(lowering, index, "tenon:gather_nd",
              [p, n](const kernels::Context&, void* const* pointers) {
                return gather(p, n, pointers, tuple_place);
              });
}

}  // namespace tenon::onednn
