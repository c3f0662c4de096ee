// SPDX-License-Identifier: Apache-2.0
#include "axis_map.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "kernels/copy.h"

namespace tenon::onednn {
namespace {

struct Shapes {
  Dims from;
  Dims strides;
  Dims to;
  int64_t element_bytes = 1;

  // Of all axes but the innermost.
  int64_t outer_entries() const { return std::accumulate(to.begin(), to.end() - 1, int64_t{0}); }
  int64_t entries() const { return outer_entries() + to.back(); }
};

// Neighbours of the innermost axis whose source coordinates are equally far apart. start < 0: they
// have no source, and all are filled.
struct Run {
  int64_t length;
  int64_t start;
  int64_t step;
};

// At most as many runs as elements.
int64_t find_runs(const int64_t* table, int64_t n, Run* runs) {
  int64_t n_runs = 0;
  for (int64_t i = 0; i < n; ++n_runs) {
    Run& run = runs[n_runs] = {1, table[i], 1};
    if (i + 1 < n && (table[i] < 0) == (table[i + 1] < 0)) run.step = table[i + 1] - table[i];
    auto goes_on = [&](int64_t k) {
      return (table[k] < 0) == (run.start < 0) && table[k] == table[k - 1] + run.step;
    };
    while (i + run.length < n && goes_on(i + run.length))
      ++run.length;
    i += run.length;
  }
  return n_runs;
}

template <class T>
void copy_backwards(const T* from, int64_t n, T* out) {
  int64_t k = 0;
  if constexpr (sizeof(T) == 1) {  // words whose bytes change places
    for (; k + 8 <= n; k += 8) {
      uint64_t word;
      std::memcpy(&word, from - k - 7, 8);
      word = __builtin_bswap64(word);
      std::memcpy(out + k, &word, 8);
    }
  }
  for (; k < n; ++k)
    out[k] = from[-k];
}

template <class T>
void copy_run(const T* from, int64_t step, int64_t n, T* out) {
  constexpr int64_t kShortRun = 16;  // elements that a call of memcpy is not worth
  if (step == 1 && n > kShortRun) {
    std::memcpy(out, from, static_cast<size_t>(n) * sizeof(T));
  } else if (step == 0) {
    std::fill_n(out, n, *from);
  } else if (step == -1) {
    copy_backwards(from, n, out);
  } else {
    for (int64_t k = 0; k < n; ++k)
      out[k] = from[k * step];
  }
}

// The innermost axis: as runs, or, where these are short, as a table of coordinates. factor: how
// often each element of the source is repeated, in order; 0: it is not.
struct RowMap {
  std::span<const Run> runs;
  const int64_t* table = nullptr;
  int64_t length = 0;
  int64_t factor = 0;

  bool has_short_runs() const {
    constexpr int64_t kShortest = 8;  // on average
    return length < kShortest * static_cast<int64_t>(runs.size());
  }
};

int64_t find_factor(const int64_t* table, int64_t n) {
  int64_t factor = 1;
  while (factor < n && table[factor] == table[0])
    ++factor;
  if (factor < 2 || n % factor != 0) return 0;
  for (int64_t i = 0; i < n; ++i)
    if (table[i] != i / factor) return 0;
  return factor;
}

// What a row takes of the source, whose elements are moved as T; src: nullptr where all is filled.
template <class T>
void copy_row(const RowMap& map, const T* src, T filler, T* out) {
  if (src != nullptr && map.factor > 0)
    return kernels::repeat_elements(src, map.length / map.factor, map.factor, sizeof(T), out);
  if (src != nullptr && map.has_short_runs()) {
    for (int64_t i = 0; i < map.length; ++i)
      out[i] = map.table[i] < 0 ? filler : src[map.table[i]];
    return;
  }
  for (const Run& run : map.runs) {
    if (src == nullptr || run.start < 0)
      std::fill_n(out, run.length, filler);
    else
      copy_run(src + run.start, run.step, run.length, out);
    out += run.length;
  }
}

// Rows of the innermost axis; entries hold coordinates. Neighbours that take the same row of the
// source are the same.
template <class T>
void copy_rows(const Shapes& s,
               const int64_t* entries,
               const RowMap& map,
               const void* src,
               T filler,
               std::pair<int64_t, int64_t> rows,
               T* dst) {
  size_t rank = s.to.size();
  const int64_t inner = s.to[rank - 1];
  const int64_t* last = entries + s.outer_entries();
  int64_t before = -1;
  for (int64_t row = rows.first; row < rows.second; ++row) {
    int64_t at = 0;
    int64_t rest = row;
    const int64_t* table = last;
    for (size_t axis = rank - 1; axis-- > 0; rest /= s.to[axis]) {
      table -= s.to[axis];
      int64_t place = table[rest % s.to[axis]];
      at = place < 0 || at < 0 ? -1 : at + place * s.strides[axis];
    }
    T* const out = dst + row * inner;
    if (at >= 0 && at == before && row > rows.first)
      std::memcpy(out, out - inner, static_cast<size_t>(inner) * sizeof(T));
    else
      copy_row(map, at < 0 ? nullptr : static_cast<const T*>(src) + at, filler, out);
    before = at;
  }
}

// entries: of all axes but the innermost, which has a map.
void run(const Shapes& s,
         const kernels::Context& context,
         const int64_t* entries,
         const RowMap& map,
         const void* filler,
         void* const* src_dst) {
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < s.to.size(); ++axis)
    rows *= s.to[axis];
  kernels::visit_width(s.element_bytes, [&]<class T>() {
    T fills = {};
    if (filler != nullptr) std::memcpy(&fills, filler, sizeof fills);
    kernels::parallel_for(
        context.parallel, rows, kernels::grain_rows(s.to.back() * s.element_bytes),
        [&](int64_t lo, int64_t hi) {
          copy_rows<T>(s, entries, map, src_dst[0], fills, {lo, hi}, static_cast<T*>(src_dst[1]));
        });
  });
}

struct Known {
  std::vector<int64_t> entries;  // of the innermost axis too where its runs are short
  std::vector<Run> runs;
  RowMap map = {};
};

void add_coordinates(const std::vector<Run>& runs, std::vector<int64_t>& entries) {
  for (const Run& run : runs)
    for (int64_t i = 0; i < run.length; ++i)
      entries.push_back(run.start < 0 ? -1 : run.start + i * run.step);
}

constexpr int64_t kMergedBytes = int64_t{64} << 10;  // of longer rows there are few for threads

bool takes_whole_rows(const Shapes& s, const Known& known) {
  const size_t rank = s.to.size();
  if (rank < 2 || s.from.back() != s.to.back() || known.runs.size() != 1) return false;
  const Run& run = known.runs.front();
  return run.start == 0 && (run.step == 1 || run.length == 1) &&
         s.to[rank - 2] * s.to.back() * s.element_bytes <= kMergedBytes;
}

// Where rows are taken as they are, they and the axis around them are one axis.
void merge_whole_rows(Shapes& s, Known& known) {
  while (takes_whole_rows(s, known)) {
    const int64_t row = s.to.back();
    s.to.pop_back();
    s.from.pop_back();
    const int64_t* table = known.entries.data() + s.outer_entries();
    std::vector<Run> outer(static_cast<size_t>(s.to.back()));
    outer.resize(static_cast<size_t>(find_runs(table, s.to.back(), outer.data())));
    known.runs.clear();
    for (const Run& run : outer) {
      const bool is_joined = run.start < 0 || run.step == 1;
      for (int64_t i = 0; i < (is_joined ? 1 : run.length); ++i)
        known.runs.push_back(
            {is_joined ? run.length * row : row, (run.start + i * run.step) * row, 1});
    }
    known.entries.resize(static_cast<size_t>(s.outer_entries()));
    s.to.back() *= row;
    s.from.back() *= row;
    s.strides = row_major_strides(s.from);
  }
}

// What constant parameters say, found once; null: a run has to read them, or they are wrong.
std::shared_ptr<const Known> known_tables(
    const Graph& graph, const Node& node, Shapes& s, int filler, const FillTables& fill) {
  std::vector<void*> parameters(node.inputs.size());
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (static_cast<int>(i) == filler || node.inputs[i] == kNone) continue;
    parameters[i] = const_cast<void*>(graph.values[node.inputs[i]].data);  // only read
    if (parameters[i] == nullptr) return nullptr;
  }
  auto known = std::make_shared<Known>();
  known->entries.resize(static_cast<size_t>(s.entries()));
  if (fill({s.from, s.to, parameters.data(), known->entries.data()}) != nullptr) return nullptr;
  known->runs.resize(static_cast<size_t>(s.to.back()));
  const int64_t* last = known->entries.data() + s.outer_entries();
  known->runs.resize(static_cast<size_t>(find_runs(last, s.to.back(), known->runs.data())));
  known->runs.shrink_to_fit();
  const int64_t factor = find_factor(last, s.to.back());
  known->entries.resize(static_cast<size_t>(s.outer_entries()));
  merge_whole_rows(s, *known);
  known->map = {known->runs, nullptr, s.to.back(), factor};
  if (known->map.has_short_runs()) add_coordinates(known->runs, known->entries);
  known->entries.shrink_to_fit();
  known->map.table = known->entries.data() + s.outer_entries();
  return known;
}

}  // namespace

void lower_axis_map(
    Lowering& lowering, int index, const char* kernel, int filler, FillTables fill) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& src = graph.values[node.inputs[0]];
  const Value& dst = graph.values[node.outputs[0]];
  const bool only_moves = filler == kNoFiller;
  const ElementType type = only_moves ? moved_type(lowering, node.inputs[0]) : src.type;
  Shapes s{src.dims, row_major_strides(src.dims), dst.dims, kernels::element_bytes(type)};
  if (s.to.empty()) s = {{1}, {1}, {1}, s.element_bytes};
  size_t n_in = node.inputs.size();
  if (const auto known = known_tables(graph, node, s, filler, fill))
    return lower_dense(
        lowering, index, kernel,
        [s, known, filler, n_in](const kernels::Context& context,
                                 void* const* pointers) -> const char* {
          void* const src_dst[] = {pointers[0], pointers[n_in]};
          run(s, context, known->entries.data(), known->map,
              filler < 0 ? nullptr : pointers[filler], src_dst);
          return nullptr;
        },
        0, only_moves ? FirstOutput::kAsStored : FirstOutput::kApart);
  const int64_t bytes = s.entries() * 8 + s.to.back() * static_cast<int64_t>(sizeof(Run));
  lower_dense(
      lowering, index, kernel,
      [s, fill = std::move(fill), filler, n_in](const kernels::Context& context,
                                                void* const* pointers) -> const char* {
        int64_t* tables = static_cast<int64_t*>(pointers[n_in + 1]);
        if (const char* why = fill({s.from, s.to, pointers, tables})) return why;
        void* const src_dst[] = {pointers[0], pointers[n_in]};
        Run* runs = reinterpret_cast<Run*>(tables + s.entries());
        const auto n_runs =
            static_cast<size_t>(find_runs(tables + s.outer_entries(), s.to.back(), runs));
        run(s, context, tables, {{runs, n_runs}, tables + s.outer_entries(), s.to.back(), 0},
            filler < 0 ? nullptr : pointers[filler], src_dst);
        return nullptr;
      },
      bytes, only_moves ? FirstOutput::kAsStored : FirstOutput::kApart);
}

}  // namespace tenon::onednn
