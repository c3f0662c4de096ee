// SPDX-License-Identifier: Apache-2.0
#pragma once
// Threads for our own kernels: the team that oneDNN's regions run on.

#include "kernels/types.h"

namespace tenon::onednn {

// At most *threads at once; the number outlives the runs.
kernels::Parallel team_pool(const int* threads);

}  // namespace tenon::onednn
