// SPDX-License-Identifier: Apache-2.0
#pragma once
// Threads for our own kernels from the libgomp teams that oneDNN's run in.

#include "kernels/types.h"

namespace tenon::onednn {

// At most *threads at once; the number outlives the runs.
kernels::Parallel omp_pool(const int* threads);

}  // namespace tenon::onednn
