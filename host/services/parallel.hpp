// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parallel loops on the threads of libgomp, the same that oneDNN uses. libgomp keeps a team for
// each calling thread, so concurrent loops share one process-wide budget of threads.

#include <cstdint>

#include "tenon/host/parallel.h"

#include "services/status.hpp"

namespace tenon::host {

size_t default_threads();  // what OMP_NUM_THREADS and the CPU mask leave

// From now on a thread that forks gives up its team first, and so starts another one on either
// side: in the child it would wait forever for threads that only the parent has.
void survive_forks();

// Body on ranges that cover 0..n, each at least grain long but the last, on at most `threads`
// threads including the caller. Inside another loop it runs inline.
using RangeBody = void(TN_CALL*)(void* arg, uint64_t begin, uint64_t end);
Status run_parallel(size_t threads, uint64_t n, uint64_t grain, RangeBody body, void* arg);

const tn_host_parallel* parallel_service();

}  // namespace tenon::host
