// SPDX-License-Identifier: Apache-2.0
// TopK: each row in order, or its first k. Equal numbers keep the order of their indices; NaN
// counts as the largest. What need not be sorted is in the order of the indices.

#include "dense.hpp"
#include "row_select.hpp"

namespace tenon::onednn {
namespace {

struct TopK {
  AxisSplit split;
  int64_t k = 0;
  bool wants_largest = true;
  bool is_sorted = true;
  ElementType type = ElementType::kF32;
  ElementType k_type = ElementType::kI64;
};

// Of so many parts of a row, one is taken without a look at the order of the others; fewer parts
// are enough where k is small. Rows of 16 to 8,400 random numbers: a fifth slower than the other
// way at most.
constexpr int64_t kSmallPart = 16, kSmallPartOfFew = 8;
constexpr int64_t kFew = 8;

bool takes_few(const TopK& top) {
  const int64_t parts = top.k <= kFew ? kSmallPartOfFew : kSmallPart;
  return top.k == 1 || top.k <= top.split.k / parts;
}

// room: for two entries of each number of the row
template <class T>
void run_row(const TopK& top, const T* src, T* values, int64_t* indices, Entry<Key<T>>* room) {
  const int64_t inner = top.split.inner, n = top.split.k;
  const RowKeys<T> keys = {src, inner, top.wants_largest};
  if (!top.is_sorted)
    return select_first(keys, n, top.k, reinterpret_cast<Key<T>*>(room), values, indices);
  const Entry<Key<T>>* first = room;
  if (takes_few(top)) {
    first_few(keys, n, top.k, room);
  } else {
    for (int64_t i = 0; i < n; ++i)
      room[i] = {keys(i), static_cast<uint32_t>(i)};
    first = in_order(room, room + n, n);
  }
  for (int64_t i = 0; i < top.k; ++i) {
    if (values != nullptr) values[i * inner] = src[first[i].index * inner];
    if (indices != nullptr) indices[i * inner] = first[i].index;
  }
}

// Bytes of a row's room: keys, the first few, or all entries twice.
int64_t row_room(const TopK& top, int64_t key_bytes) {
  const int64_t n = top.split.k, entry_bytes = std::max<int64_t>(8, 2 * key_bytes);
  if (!top.is_sorted) return n * key_bytes;
  return (takes_few(top) ? top.k : 2 * n) * entry_bytes;
}

template <class T>
void run_rows(const TopK& top, int64_t lo, int64_t hi, void* const* pointers) {
  const int64_t inner = top.split.inner;
  const T* src = static_cast<const T*>(pointers[0]);
  T* values = static_cast<T*>(pointers[2]);
  int64_t* indices = static_cast<int64_t*>(pointers[3]);
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t from = i / inner * top.split.k * inner + i % inner;
    const int64_t to = i / inner * top.k * inner + i % inner;
    run_row(top, src + from, values == nullptr ? nullptr : values + to,
            indices == nullptr ? nullptr : indices + to,
            reinterpret_cast<Entry<Key<T>>*>(static_cast<char*>(pointers[4]) +
                                             i * row_room(top, sizeof(Key<T>))));
  }
}

const char* run(const TopK& top, const kernels::Context& context, void* const* pointers) {
  if (integer_at(pointers[1], top.k_type, 0) != top.k) return "k is not the one that was compiled";
  kernels::visit(top.type, [&]<class T>() {
    if (top.k == 1 && has_columns<T>(top.split))
      return first_of_columns(context, top.split, top.wants_largest,
                              static_cast<const T*>(pointers[0]), static_cast<T*>(pointers[2]),
                              static_cast<int64_t*>(pointers[3]));
    kernels::parallel_for(context.parallel, top.split.outer * top.split.inner,
                          kernels::grain_rows(top.split.k * 64),
                          [&](int64_t lo, int64_t hi) { run_rows<T>(top, lo, hi, pointers); });
  });
  return nullptr;
}

}  // namespace

std::string refuse_top_k(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 2) return "expected two results";
  if (graph.values[node.inputs[0]].dims.empty()) return "a scalar";
  if (graph.values[node.inputs[1]].count() != 1) return "only one k";
  if (graph.values[node.inputs[0]].count() > UINT32_MAX) return "more numbers than 32 bits count";
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
           .is_sorted = node.integer("sorted", 1) != 0,
           .type = src.type,
           .k_type = graph.values[node.inputs[1]].type};
  lower_dense(
      lowering, index, "tenon:top_k",
      [top](const kernels::Context& context, void* const* pointers) {
        return run(top, context, pointers);
      },
      top.split.outer * top.split.inner * row_room(top, kernels::element_bytes(src.type)));
}

}  // namespace tenon::onednn
