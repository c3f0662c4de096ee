// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parallel loops on the team (threads/team.hpp), whose threads all plugins of the process share.

#include <cstdint>

#include "tenon/host/parallel.h"

#include "services/status.hpp"

namespace tenon::host {

// Body on ranges that cover 0..n, each at least grain long but the last, on at most `threads`
// threads including the caller. Inside another loop it runs inline.
using RangeBody = void(TN_CALL*)(void* arg, uint64_t begin, uint64_t end);
Status run_parallel(size_t threads, uint64_t n, uint64_t grain, RangeBody body, void* arg);

const tn_host_parallel* parallel_service();

}  // namespace tenon::host
