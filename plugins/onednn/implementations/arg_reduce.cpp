// SPDX-License-Identifier: Apache-2.0
// ArgMax, ArgMin, Hardmax: where the largest or smallest number of an axis is.

#include <algorithm>
#include <functional>
#include <type_traits>

#include "dense.hpp"
#include "kernels/kernel_table.h"
#include "row_select.hpp"

namespace tenon::onednn {
namespace {

struct Search {
  AxisSplit split;
  bool wants_least = false;
  bool takes_last = false;  // of equal ones
};

constexpr int64_t kBlock = 1024;
constexpr int64_t kLongRow = 128;  // from where on a block's best is found sooner than each place

// Of numbers, without a branch: which one is best is not to be guessed. `is_better` than the best.
template <class T, class F>
int64_t best_of(const T* row, const AxisSplit& split, bool* has_nan, const F& is_better) {
  auto best = comparable(row[0]);
  int64_t at = 0;
  bool found_nan = is_nan(row[0]);
  for (int64_t i = 1; i < split.k; ++i) {
    const T given = row[i * split.inner];
    const auto next = comparable(given);
    found_nan |= is_nan(given);
    const bool replaces = is_better(next, best);
    best = replaces ? next : best;
    at = replaces ? i : at;
  }
  *has_nan = found_nan;
  return at;
}

template <class T>
int64_t nan_of(const T* row, const Search& search) {
  int64_t found = -1;
  for (int64_t i = 0; i < search.split.k; ++i) {
    if (is_nan(row[i * search.split.inner]) && (found < 0 || search.takes_last)) found = i;
  }
  return found;
}

// NaN comes before all others.
template <class T>
int64_t find(const Search& search, const T* row) {
  constexpr int64_t kFewestInVectors = 256;  // of shorter rows one after the other is as fast
  const bool is_first_of_row = !search.wants_least && !search.takes_last &&
                               search.split.inner == 1 && search.split.k >= kFewestInVectors &&
                               search.split.k <= UINT32_MAX;
  if (std::is_floating_point_v<T> && is_first_of_row) {
    Entry<Key<T>> first;
    first_few(RowKeys<T>{row, 1, true}, search.split.k, 1, &first);
    return first.index;
  }
  bool has_nan = false;
  auto best = [&](const auto& is_better) {
    return best_of(row, search.split, &has_nan, is_better);
  };
  const int64_t at = search.wants_least
                         ? search.takes_last ? best(std::less_equal<>()) : best(std::less<>())
                     : search.takes_last ? best(std::greater_equal<>())
                                         : best(std::greater<>());
  return has_nan ? nan_of(row, search) : at;
}

// What kernels/exact_reduce_args.h keeps of an element T.
template <class T>
using Kept = std::conditional_t<kernels::kIsReal<T> && sizeof(T) == 2,
                                float,
                                std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;

// In a long row of numbers that lie end to end: the block that has it, then the number itself.
template <class T>
int64_t find_in_blocks(const kernels::Context& context,
                       const Search& search,
                       ElementType type,
                       const T* row) {
  using A = Kept<T>;
  const kernels::Join join = search.wants_least ? kernels::Join::kMin : kernels::Join::kMax;
  const int64_t n = search.split.k;
  A best = {};
  int64_t found = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    A most = kernels::number_cast<A>(row[begin]);
    context.table->join_run({.join = join,
                             .type = type,
                             .src = row + begin,
                             .n = std::min(kBlock, n - begin),
                             .totals = &most});
    if (most != most) return nan_of(row, search);
    const bool is_better = search.wants_least ? most < best : most > best;
    if (begin > 0 && !is_better && !(search.takes_last && most == best)) continue;
    best = most;
    found = begin;
  }
  auto is_best = [&](const T& x) { return kernels::number_cast<A>(x) == best; };
  const T *begin = row + found, *end = row + std::min(found + kBlock, n);
  if (!search.takes_last) return std::find_if(begin, end, is_best) - row;
  while (!is_best(*--end)) {
  }
  return end - row;
}

// each(outer * inner index, offset of the row, position found)
template <class F>
void search_all(const kernels::Context& context,
                const Search& search,
                ElementType type,
                const void* data,
                const F& each) {
  const AxisSplit& split = search.split;
  const bool is_long = split.inner == 1 && split.k >= kLongRow;
  kernels::parallel_for(
      context.parallel, split.outer * split.inner,
      kernels::grain_rows(split.k * kernels::element_bytes(type)), [&](int64_t lo, int64_t hi) {
        kernels::visit(type, [&]<class T>() {
          const T* src = static_cast<const T*>(data);
          for (int64_t i = lo; i < hi; ++i) {
            int64_t offset = i / split.inner * split.k * split.inner + i % split.inner;
            each(i, offset,
                 is_long ? find_in_blocks(context, search, type, src + offset)
                         : find(search, src + offset));
          }
        });
      });
}

// The largest of columns. Keys have NaN above all others: that is no order for the least one.
bool find_in_columns(const kernels::Context& context,
                     const Search& search,
                     ElementType type,
                     const void* data,
                     int64_t* indices) {
  if (search.wants_least || search.takes_last) return false;
  bool is_found = false;
  kernels::visit(type, [&]<class T>() {
    is_found = has_columns<T>(search.split);
    if (is_found)
      first_of_columns<T>(context, search.split, true, static_cast<const T*>(data), nullptr,
                          indices);
  });
  return is_found;
}

}  // namespace

std::string refuse_arg_reduce(const Graph&, const Node&) {
  return {};
}

void lower_arg_reduce(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const Value& src = lowering.graph().values[node.inputs[0]];
  Search search;
  search.split = split_at(src.dims, positive_axis(node.integer("axis", 0), src.dims.size()));
  search.wants_least = node.op == "ArgMin";
  search.takes_last = node.integer("select_last_index", 0) != 0;
  ElementType type = src.type;
  lower_dense(
      lowering, index, "tenon:arg_reduce",
      [search, type](const kernels::Context& context, void* const* pointers) -> const char* {
        int64_t* out = static_cast<int64_t*>(pointers[1]);
        if (find_in_columns(context, search, type, pointers[0], out)) return nullptr;
        search_all(context, search, type, pointers[0],
                   [&](int64_t i, int64_t, int64_t at) { out[i] = at; });
        return nullptr;
      });
}

std::string refuse_hardmax(const Graph&, const Node&) {
  return {};
}

void lower_hardmax(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const Value& src = lowering.graph().values[node.inputs[0]];
  Search search;
  search.split = split_at(src.dims, positive_axis(node.integer("axis", -1), src.dims.size()));
  ElementType type = src.type;
  lower_dense(
      lowering, index, "tenon:hardmax",
      [search, type](const kernels::Context& context, void* const* pointers) -> const char* {
        search_all(context, search, type, pointers[0], [&](int64_t, int64_t offset, int64_t at) {
          kernels::visit(type, [&]<class T>() {
            T* out = static_cast<T*>(pointers[1]) + offset;
            for (int64_t k = 0; k < search.split.k; ++k)
              out[k * search.split.inner] = T{};
            out[at * search.split.inner] = kernels::number_cast<T>(1);
          });
        });
        return nullptr;
      });
}

}  // namespace tenon::onednn
