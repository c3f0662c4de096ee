// SPDX-License-Identifier: Apache-2.0
#pragma once
// Threads for a kernel that is measured alone, as a plan gives them.

#include <algorithm>
#include <cstdint>

#include <omp.h>

#include "kernels/types.h"

namespace tenon::onednn::kernels {

// threads: how many; outlives the runs.
inline Parallel pool(int* threads) {
  return {[](void* self, uint64_t n, uint64_t grain, Parallel::Body body, void* arg) {
            const uint64_t most = (n + grain - 1) / grain;
            const uint64_t pieces = std::min<uint64_t>(*static_cast<int*>(self), most);
#pragma omp parallel for num_threads(static_cast<int>(pieces)) schedule(static)
            for (uint64_t i = 0; i < pieces; ++i)
              body(arg, i * n / pieces, (i + 1) * n / pieces);
          },
          threads};
}

}  // namespace tenon::onednn::kernels
