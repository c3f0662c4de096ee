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

// Rows of the innermost axis; entries hold coordinates.
void copy_rows(const Shapes& s,
               const int64_t* entries,
               const char* src,
               const char* filler,
               std::pair<int64_t, int64_t> rows,
               char* dst) {
  size_t rank = s.to.size();
  size_t bytes = static_cast<size_t>(s.element_bytes);
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
    char* out = dst + row * inner * s.element_bytes;
    for (int64_t i = 0; i < inner;) {
      const bool is_filler = at < 0 || last[i] < 0;
      const char* from = is_filler ? filler : src + (at + last[i]) * s.element_bytes;
      const int64_t n = is_filler ? 1 : run_length(last, i, inner);
      std::memcpy(out + i * s.element_bytes, from, static_cast<size_t>(n) * bytes);
      i += n;
    }
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
  kernels::parallel_for(context.parallel, rows, kernels::grain_rows(s.to.back() * s.element_bytes),
                        [&](int64_t lo, int64_t hi) {
                          copy_rows(s, entries, static_cast<const char*>(src_dst[0]),
                                    filler == nullptr ? kZero : static_cast<const char*>(filler),
                                    {lo, hi}, static_cast<char*>(src_dst[1]));
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
