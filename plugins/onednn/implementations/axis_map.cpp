// SPDX-License-Identifier: Apache-2.0
#include "axis_map.hpp"

#include <cstring>
#include <utility>

namespace tenon::onednn {
namespace {

struct Shapes {
  Dims from;
  Dims strides;
  Dims to;
  int64_t element_bytes = 1;
};

// How many elements from i on lie one behind the other in the source.
int64_t run_length(const int64_t* table, int64_t i, int64_t end) {
  int64_t n = 1;
  while (i + n < end && table[i + n] == table[i] + n)
    ++n;
  return n;
}

// What a row takes of the source, whose elements are moved as T; src: nullptr where all is filled.
template <class T>
void copy_row(const int64_t* table, int64_t n, const T* src, T filler, T* out) {
  constexpr int64_t kShortRun = 16;  // elements that a call of memcpy is not worth
  for (int64_t i = 0; i < n;) {
    if (src == nullptr || table[i] < 0) {
      out[i++] = filler;
      continue;
    }
    const T* from = src + table[i];
    const int64_t run = run_length(table, i, n);
    if (run > kShortRun) std::memcpy(out + i, from, static_cast<size_t>(run) * sizeof(T));
    for (int64_t k = 0; run <= kShortRun && k < run; ++k)
      out[i + k] = from[k];
    i += run;
  }
}

// Rows of the innermost axis; entries hold coordinates.
template <class T>
void copy_rows(const Shapes& s,
               const int64_t* entries,
               const void* src,
               const void* filler,
               std::pair<int64_t, int64_t> rows,
               void* dst) {
  size_t rank = s.to.size();
  T fills;
  std::memcpy(&fills, filler, sizeof fills);
  const int64_t inner = s.to[rank - 1];
  const int64_t* last = entries;
  for (size_t axis = 0; axis + 1 < rank; ++axis)
    last += s.to[axis];
  for (int64_t row = rows.first; row < rows.second; ++row) {
    int64_t at = 0;
    int64_t rest = row;
    const int64_t* table = last;
    for (size_t axis = rank - 1; axis-- > 0; rest /= s.to[axis]) {
      table -= s.to[axis];
      int64_t place = table[rest % s.to[axis]];
      at = place < 0 || at < 0 ? -1 : at + place * s.strides[axis];
    }
    const T* from = at < 0 ? nullptr : static_cast<const T*>(src) + at;
    copy_row(last, inner, from, fills, static_cast<T*>(dst) + row * inner);
  }
}

const char* run(const Shapes& s,
                const kernels::Context& context,
                const int64_t* entries,
                const void* filler,
                void* const* src_dst) {
  static constexpr char kZero[8] = {};
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < s.to.size(); ++axis)
    rows *= s.to[axis];
  kernels::visit_width(s.element_bytes, [&]<class T>() {
    kernels::parallel_for(context.parallel, rows,
                          kernels::grain_rows(s.to.back() * s.element_bytes),
                          [&](int64_t lo, int64_t hi) {
                            copy_rows<T>(s, entries, src_dst[0], filler == nullptr ? kZero : filler,
                                         {lo, hi}, src_dst[1]);
                          });
  });
  return nullptr;
}

}  // namespace

void lower_axis_map(
    Lowering& lowering, int index, const char* kernel, int filler, FillTables fill) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& src = graph.values[node.inputs[0]];
  const Value& dst = graph.values[node.outputs[0]];
  Shapes s{src.dims, row_major_strides(src.dims), dst.dims, kernels::element_bytes(src.type)};
  if (s.to.empty()) s = {{1}, {1}, {1}, s.element_bytes};
  int64_t entries = 0;
  for (int64_t dim : s.to)
    entries += dim;
  size_t n_in = node.inputs.size();
  lower_dense(
      lowering, index, kernel,
      [s, fill = std::move(fill), filler, n_in](const kernels::Context& context,
                                                void* const* pointers) -> const char* {
        int64_t* tables = static_cast<int64_t*>(pointers[n_in + 1]);
        if (const char* why = fill({s.from, s.to, pointers, tables})) return why;
        void* const src_dst[] = {pointers[0], pointers[n_in]};
        return run(s, context, tables, filler == kNone ? nullptr : pointers[filler], src_dst);
      },
      entries * 8);
}

}  // namespace tenon::onednn
