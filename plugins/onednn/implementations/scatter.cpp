// SPDX-License-Identifier: Apache-2.0
// ScatterElements and ScatterND: a copy of the data where it is still needed, then each update at
// its place, in order.

#include <algorithm>
#include <cstring>
#include <span>

#include "tenon/wrapping.hpp"

#include "dense.hpp"
#include "graph/checked_indices.hpp"

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

// In what updates join: integers wrap around, halves are rounded once.
template <class T>
using Joined = std::conditional_t<
    std::is_same_v<T, kernels::Half> || std::is_same_v<T, kernels::Bf16>,
    float,
    std::conditional_t<kernels::kIsReal<T> || sizeof(T) == sizeof(int64_t), T, int64_t>>;

template <Join kJoin, class T>
T joined(T old, T update) {
  using A = Joined<T>;
  A a = kernels::number_cast<A>(old);
  A b = kernels::number_cast<A>(update);
  if constexpr (kJoin == Join::kAdd) return kernels::number_cast<T>(wrapping_add(a, b));
  if constexpr (kJoin == Join::kMul) return kernels::number_cast<T>(wrapping_mul(a, b));
  if constexpr (kJoin == Join::kMax) return b > a || b != b ? update : old;
  if constexpr (kJoin == Join::kMin) return b < a || b != b ? update : old;
  return update;
}

// Calls f.operator()<kJoin>().
template <class F>
auto with_join(Join join, const F& f) {
  switch (join) {
    case Join::kAdd:
      return f.template operator()<Join::kAdd>();
    case Join::kMul:
      return f.template operator()<Join::kMul>();
    case Join::kMax:
      return f.template operator()<Join::kMax>();
    case Join::kMin:
      return f.template operator()<Join::kMin>();
    default:
      return f.template operator()<Join::kNone>();
  }
}

template <Join kJoin, class T, class I>
const char* scatter_elements(const Scatter& s, const I* indices, const T* updates, T* out) {
  const auto axis = static_cast<size_t>(s.axis);
  const int64_t extent = s.dims[axis];
  const int64_t stride = s.strides[axis];
  const int64_t n = s.index_dims.back();
  const int64_t step = axis + 1 == s.dims.size() ? 0 : 1;  // from column to column
  for (int64_t row = 0, rows = element_count(s.index_dims) / std::max<int64_t>(1, n); row < rows;
       ++row) {
    T* begin = out + row_start(s.index_dims, s.strides, s.axis, row);
    for (int64_t i = 0; i < n; ++i) {
      int64_t place = indices[row * n + i];
      if (!resolve_index(&place, extent)) return outside_text();
      T& to = begin[i * step + place * stride];
      to = joined<kJoin>(to, updates[row * n + i]);
    }
  }
  return nullptr;
}

// Where each tuple points; nullptr, or what is wrong with one.
template <class I>
const char* resolve_tuples(const Scatter& s, const I* indices, std::span<int64_t> starts) {
  const auto depth = static_cast<size_t>(s.index_dims.back());
  const std::span<const int64_t> extents(s.dims.data(), depth), strides(s.strides.data(), depth);
  for (int64_t& start : starts) {
    int64_t at = 0;
    for (size_t axis = 0; axis < depth; ++axis) {
      int64_t place = *indices++;
      if (!resolve_index(&place, extents[axis])) return outside_text();
      at += place * strides[axis];
    }
    start = at;
  }
  return nullptr;
}

// Threads share the columns of what a tuple points at, so that the updates of each element keep
// their order.
template <Join kJoin, class T>
void scatter_nd(const kernels::Context& context,
                std::span<const int64_t> starts,
                int64_t width,
                const T* updates,
                T* out) {
  if (width == 1) {
    for (size_t t = 0; t < starts.size(); ++t)
      out[starts[t]] = joined<kJoin>(out[starts[t]], updates[t]);
    return;
  }
  constexpr int64_t kLeastWork = 1 << 15;
  const auto n = static_cast<int64_t>(starts.size());
  const int64_t grain = std::max<int64_t>(64, kLeastWork / std::max<int64_t>(1, n));
  kernels::parallel_for(context.parallel, width, grain, [&](int64_t lo, int64_t hi) {
    for (int64_t t = 0; t < n; ++t) {
      T* to = out + starts[t];
      const T* from = updates + t * width;
      for (int64_t i = lo; i < hi; ++i)
        to[i] = joined<kJoin>(to[i], from[i]);
    }
  });
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

void copy_data(void* const* pointers, size_t bytes) {
  if (pointers[3] != pointers[0]) std::memcpy(pointers[3], pointers[0], bytes);
}

void lower_elements(Lowering& lowering, int index, const Scatter& s, size_t bytes) {
  auto run = [s, bytes](const kernels::Context&, void* const* pointers) {
    copy_data(pointers, bytes);
    return kernels::visit(s.type, [&]<class T>() -> const char* {
      return with_join(s.join, [&]<Join kJoin>() {
        const T* updates = static_cast<const T*>(pointers[2]);
        T* out = static_cast<T*>(pointers[3]);
        if (s.index_type == ElementType::kI32)
          return scatter_elements<kJoin>(s, static_cast<const int32_t*>(pointers[1]), updates, out);
        return scatter_elements<kJoin>(s, static_cast<const int64_t*>(pointers[1]), updates, out);
      });
    });
  };
  lower_dense(lowering, index, "tenon:scatter", run, 0, FirstOutput::kOverFirstInput);
}

void lower_tuples(Lowering& lowering, int index, const Scatter& s, size_t bytes) {
  const auto depth = static_cast<size_t>(s.index_dims.back());
  const auto n = static_cast<size_t>(element_count(s.index_dims)) / depth;
  const int64_t width = element_count({s.dims.begin() + s.index_dims.back(), s.dims.end()});
  auto run = [=](const kernels::Context& context, void* const* pointers) -> const char* {
    const std::span<int64_t> starts(static_cast<int64_t*>(pointers[4]), n);
    const void* indices = pointers[1];
    const char* wrong = s.index_type == ElementType::kI32
                            ? resolve_tuples(s, static_cast<const int32_t*>(indices), starts)
                            : resolve_tuples(s, static_cast<const int64_t*>(indices), starts);
    if (wrong != nullptr) return wrong;
    copy_data(pointers, bytes);
    kernels::visit(s.type, [&]<class T>() {
      with_join(s.join, [&]<Join kJoin>() {
        scatter_nd<kJoin>(context, starts, width, static_cast<const T*>(pointers[2]),
                          static_cast<T*>(pointers[3]));
      });
    });
    return nullptr;
  };
  lower_dense(lowering, index, "tenon:scatter", run, static_cast<int64_t>(n * sizeof(int64_t)),
              FirstOutput::kOverFirstInput);
  const Graph& graph = lowering.graph();
  lowering.plan().steps.back().always_succeeds = has_checked_indices(graph, graph.nodes[index]);
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
    if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return "an axis out of range";
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
  const auto bytes = static_cast<size_t>(src.bytes());
  if (node.op == "ScatterND")
    lower_tuples(lowering, index, s, bytes);
  else
    lower_elements(lowering, index, s, bytes);
}

}  // namespace tenon::onednn
