// SPDX-License-Identifier: Apache-2.0
// Checks indices and divides rows between threads.

#include "gather.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "numbers.h"

namespace tenon::onednn::kernels {

namespace {

int64_t id_at(const GatherArgs& args, int64_t i) {
  const int64_t id = args.ids_type == ElementType::kI32 ? static_cast<const int32_t*>(args.ids)[i]
                                                        : static_cast<const int64_t*>(args.ids)[i];
  return id < 0 ? id + args.m : id;
}

// The first of n indices that is outside, or -1: all of them by threads, without a branch, then one
// by one.
template <class I>
int64_t first_outside(const Context& context, const I* ids, int64_t n, int64_t m) {
  std::atomic<bool> any_outside = false;
  parallel_for(context.parallel, n, grain_rows(sizeof(I)), [&](int64_t lo, int64_t hi) {
    const auto size = static_cast<uint64_t>(m);  // unsigned numbers wrap where an index is far out
    bool any = false;
    for (int64_t i = lo; i < hi; ++i)
      any |= static_cast<uint64_t>(int64_t{ids[i]}) + size >= 2 * size;
    if (any) any_outside.store(true, std::memory_order_relaxed);
  });
  if (!any_outside.load(std::memory_order_relaxed)) return -1;
  return std::find_if(ids, ids + n, [&](I id) { return id < -m || id >= m; }) - ids;
}

// Rows [lo, hi) of the result, of one number each, which is moved as T.
template <class T, class I>
void gather_numbers(const GatherArgs& args, int64_t lo, int64_t hi) {
  const I* ids = static_cast<const I*>(args.ids);
  T* to = static_cast<T*>(args.dst);
  for (int64_t row = lo; row < hi;) {
    const T* from = static_cast<const T*>(args.src) + row / args.n * args.m;
    const int64_t first = row % args.n;
    const int64_t last = std::min(args.n, first + hi - row);
    for (int64_t i = first; i < last; ++i, ++row)
      to[row] = from[ids[i] + (ids[i] < 0 ? args.m : 0)];
  }
}

template <class I>
void gather_of_width(const Context& context, const GatherArgs& args) {
  visit_width(args.row_bytes, [&]<class T>() {
    parallel_for(context.parallel, args.outer * args.n, grain_rows(args.row_bytes + 8),
                 [&](int64_t lo, int64_t hi) { gather_numbers<T, I>(args, lo, hi); });
  });
}

bool is_number(int64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

}  // namespace

int64_t gather_rows(const Context& context, const GatherArgs& args) {
  const bool is_narrow = args.ids_type == ElementType::kI32;
  const int64_t outside =
      is_narrow ? first_outside(context, static_cast<const int32_t*>(args.ids), args.n, args.m)
                : first_outside(context, static_cast<const int64_t*>(args.ids), args.n, args.m);
  if (outside >= 0) return outside;
  if (is_number(args.row_bytes)) {
    is_narrow ? gather_of_width<int32_t>(context, args) : gather_of_width<int64_t>(context, args);
    return -1;
  }
  parallel_for(context.parallel, args.outer * args.n, grain_rows(args.row_bytes * 2),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t row = lo; row < hi; ++row) {
                   const int64_t from = row / args.n * args.m + id_at(args, row % args.n);
                   std::memcpy(static_cast<char*>(args.dst) + row * args.row_bytes,
                               static_cast<const char*>(args.src) + from * args.row_bytes,
                               static_cast<uint64_t>(args.row_bytes));
                 }
               });
  return -1;
}

}  // namespace tenon::onednn::kernels
