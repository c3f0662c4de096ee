// SPDX-License-Identifier: Apache-2.0
// GatherElements and GatherND: each result element, or run of elements, from its own place.

#include <algorithm>
#include <atomic>
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

constexpr int64_t kOutside = -1;

// The first element or tuple whose place is outside, found by threads that each look at a piece.
class FirstOutside {
 public:
  void add(int64_t i) {
    int64_t known = first_.load(std::memory_order_relaxed);
    while (i < known && !first_.compare_exchange_weak(known, i, std::memory_order_relaxed)) {
    }
  }
  // What is wrong with it, by asking for its place once more on this thread; nullptr: all is well.
  template <class F>
  const char* text(const F& place) const {
    const int64_t first = first_.load(std::memory_order_relaxed);
    if (first == INT64_MAX) return nullptr;
    place(first);
    return outside_text();
  }

 private:
  std::atomic<int64_t> first_{INT64_MAX};
};

// The place of an index along the axis, in elements; kOutside.
int64_t along_axis(const Places& p, const void* indices, int64_t i) {
  int64_t place = integer_at(indices, p.index_type, i);
  const auto axis = static_cast<size_t>(p.axis);
  return resolve_index(&place, p.dims[axis]) ? place * p.strides[axis] : kOutside;
}

// Rows [lo, hi) of the indices, of type I, for elements that are moved as T.
template <class T, class I>
void gather_rows(
    const Places& p, int64_t lo, int64_t hi, void* const* pointers, FirstOutside* outside) {
  const auto axis = static_cast<size_t>(p.axis);
  const int64_t extent = p.dims[axis];
  const int64_t stride = p.strides[axis];
  const int64_t n = p.index_dims.back();
  const int64_t step = axis + 1 == p.dims.size() ? 0 : 1;
  for (int64_t row = lo; row < hi; ++row) {
    const T* from =
        static_cast<const T*>(pointers[0]) + row_start(p.index_dims, p.strides, p.axis, row);
    const I* at = static_cast<const I*>(pointers[1]) + row * n;
    T* to = static_cast<T*>(pointers[2]) + row * n;
    for (int64_t i = 0; i < n; ++i) {
      int64_t place = at[i];
      if (!resolve_index(&place, extent)) return outside->add(row * n + i);
      to[i] = from[i * step + place * stride];
    }
  }
}

const char* gather_elements(const Places& p,
                            const kernels::Context& context,
                            void* const* pointers) {
  const int64_t n = std::max<int64_t>(1, p.index_dims.back());
  FirstOutside outside;
  kernels::visit_width(p.element_bytes, [&]<class T>() {
    const auto run =
        p.index_type == ElementType::kI64 ? gather_rows<T, int64_t> : gather_rows<T, int32_t>;
    kernels::parallel_for(context.parallel, element_count(p.index_dims) / n,
                          kernels::grain_rows(16 * n),
                          [&](int64_t lo, int64_t hi) { run(p, lo, hi, pointers, &outside); });
  });
  return outside.text([&](int64_t i) { along_axis(p, pointers[1], i); });
}

// The byte offset of a tuple's run; kOutside.
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
    if (!resolve_index(&place, p.dims[axis])) return kOutside;
    at += place * p.strides[axis];
  }
  return at * p.element_bytes;
}

const char* gather_tuples(const Places& p,
                          int64_t n,
                          const kernels::Context& context,
                          void* const* pointers) {
  const char* src = static_cast<const char*>(pointers[0]);
  char* dst = static_cast<char*>(pointers[2]);
  FirstOutside outside;
  kernels::parallel_for(
      context.parallel, n, kernels::grain_rows(p.run_bytes + 16), [&](int64_t lo, int64_t hi) {
        for (int64_t i = lo; i < hi; ++i) {
          const int64_t from = tuple_place(p, pointers[1], i);
          if (from == kOutside) return outside.add(i);
          std::memcpy(dst + i * p.run_bytes, src + from, static_cast<size_t>(p.run_bytes));
        }
      });
  return outside.text([&](int64_t i) { tuple_place(p, pointers[1], i); });
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
    if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return "an axis out of range";
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
  if (node.op == "GatherElements") {
    return lower_dense(lowering, index, "tenon:gather_elements",
                       [p](const kernels::Context& context, void* const* pointers) {
                         return gather_elements(p, context, pointers);
                       });
  }
  for (size_t axis = p.batch_dims + static_cast<size_t>(p.index_dims.back()); axis < p.dims.size();
       ++axis) {
    p.run_bytes *= p.dims[axis];
  }
  int64_t n = element_count(p.index_dims) / p.index_dims.back();
  lower_dense(lowering, index, "tenon:gather_nd",
              [p, n](const kernels::Context& context, void* const* pointers) {
                return gather_tuples(p, n, context, pointers);
              });
}

}  // namespace tenon::onednn
