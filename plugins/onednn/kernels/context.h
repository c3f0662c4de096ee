// SPDX-License-Identifier: Apache-2.0
#pragma once
// The argument that every kernel takes first: which table of compiled kernels to use and where to
// run. Cheap to copy; any thread may use it. Tests build one per level to force the lower ones.
//
//   Context context = make_context(best_level(), {pool_run, pool});
//   softmax(context, args);

#include <cstdint>

#include "instructions.h"
#include "types.h"

namespace tenon::onednn::kernels {

struct KernelTable;

struct Context {
  const KernelTable* table = nullptr;
  Parallel parallel;
};

// The highest level that instructions() has.
Level best_level();
const char* level_name(Level level);
// Of levels above best_level() there is no row.
const KernelTable& kernel_table(Level level);
inline Context make_context(Level level, Parallel parallel = {}) {
  return {&kernel_table(level), parallel};
}

// Those of VNNI with registers of the context's level (AVX512_VNNI, AVX_VNNI); AVX512_VPOPCNTDQ at
// that level.
bool has_vnni(const Context& context);
bool has_popcount(const Context& context);

// Calls body(int64_t lo, int64_t hi) over pieces of [0, n). Small ranges stay on this thread.
template <class F>
void parallel_for(const Parallel& parallel, int64_t n, int64_t grain, const F& body) {
  if (n <= 0) return;
  if (parallel.run == nullptr || n <= grain) return body(int64_t{0}, n);
  parallel.run(
      parallel.self, static_cast<uint64_t>(n), static_cast<uint64_t>(grain < 1 ? 1 : grain),
      [](void* arg, uint64_t lo, uint64_t hi) {
        (*static_cast<const F*>(arg))(static_cast<int64_t>(lo), static_cast<int64_t>(hi));
      },
      const_cast<F*>(&body));
}

// Bytes of memory traffic that make one piece of work worth a thread switch (about 10 us of it).
constexpr int64_t kGrainBytes = int64_t{128} << 10;
constexpr int64_t grain_rows(int64_t row_bytes) {
  return row_bytes >= kGrainBytes ? 1 : kGrainBytes / (row_bytes < 1 ? 1 : row_bytes);
}

}  // namespace tenon::onednn::kernels
