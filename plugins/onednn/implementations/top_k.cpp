// SPDX-License-Identifier: Apache-2.0
// TopK: each row in order, or its first k. Equal numbers keep the order of their indices; NaN
// counts as the largest. What need not be sorted is in the order of the indices.

#include "dense.hpp"
#include "kernels/kernel_table.h"
#include "kernels/scratch.h"
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

// Short rows, of which several are sorted at once.
bool are_sorted_together(const TopK& top) {
  constexpr int64_t kShort = 256, kFewRows = 4;
  return top.is_sorted && !takes_few(top) && top.split.k <= kShort &&
         top.split.outer * top.split.inner >= kFewRows;
}

int64_t start_of_row(const AxisSplit& split, int64_t row, int64_t extent) {
  return row / split.inner * extent * split.inner + row % split.inner;
}

// Up to kSortColumns rows from `first` on; the last of them fills the other columns. A key of up to
// 32 bits has its index behind it.
template <class T>
void run_together(const TopK& top,
                  const kernels::Context& context,
                  int64_t first,
                  void* const* pointers) {
  constexpr int64_t kColumns = kernels::kSortColumns;
  constexpr bool kHasIndex = sizeof(T) < sizeof(int64_t);
  const int64_t n = top.split.k, inner = top.split.inner;
  const int64_t count = std::min(kColumns, top.split.outer * inner - first);
  auto* keys = reinterpret_cast<int64_t*>(kernels::scratch_of_thread(2 * n * kColumns * 8));
  int64_t* const places = kHasIndex ? keys : keys + n * kColumns;
  const T* rows[kColumns];
  for (int64_t c = 0; c < kColumns; ++c)
    rows[c] = static_cast<const T*>(pointers[0]) +
              start_of_row(top.split, first + std::min(c, count - 1), n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const auto key = uint64_t{key_of(rows[c][i * inner], top.wants_largest)};
      const uint64_t number = kHasIndex ? key << 32 | static_cast<uint64_t>(i) : key;
      keys[i * kColumns + c] = static_cast<int64_t>(number ^ (uint64_t{1} << 63));
      if (!kHasIndex) places[i * kColumns + c] = i;
    }
  }
  context.table->sort_columns({.keys = keys, .indices = kHasIndex ? nullptr : places, .n = n});
  T* const values = static_cast<T*>(pointers[2]);
  int64_t* const indices = static_cast<int64_t*>(pointers[3]);
  for (int64_t c = 0; c < count; ++c) {
    const int64_t to = start_of_row(top.split, first + c, top.k);
    for (int64_t i = 0; i < top.k; ++i) {
      const int64_t at = places[i * kColumns + c] & UINT32_MAX;
      if (values != nullptr) values[to + i * inner] = rows[c][at * inner];
      if (indices != nullptr) indices[to + i * inner] = at;
    }
  }
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
  if (are_sorted_together(top)) return 0;
  const int64_t n = top.split.k, entry_bytes = std::max<int64_t>(8, 2 * key_bytes);
  if (!top.is_sorted) return n * key_bytes;
  return (takes_few(top) ? top.k : 2 * n) * entry_bytes;
}

template <class T>
void run_rows(const TopK& top, int64_t lo, int64_t hi, void* const* pointers) {
  const T* src = static_cast<const T*>(pointers[0]);
  T* values = static_cast<T*>(pointers[2]);
  int64_t* indices = static_cast<int64_t*>(pointers[3]);
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t from = start_of_row(top.split, i, top.split.k);
    const int64_t to = start_of_row(top.split, i, top.k);
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
    const int64_t n_rows = top.split.outer * top.split.inner;
    if (are_sorted_together(top)) {
      constexpr int64_t kColumns = kernels::kSortColumns;
      return kernels::parallel_for(context.parallel, (n_rows + kColumns - 1) / kColumns,
                                   kernels::grain_rows(top.split.k * kColumns * 32),
                                   [&](int64_t lo, int64_t hi) {
                                     for (int64_t unit = lo; unit < hi; ++unit)
                                       run_together<T>(top, context, unit * kColumns, pointers);
                                   });
    }
    kernels::parallel_for(context.parallel, n_rows, kernels::grain_rows(top.split.k * 64),
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
