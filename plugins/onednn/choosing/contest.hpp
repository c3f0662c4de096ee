// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the contestants in turn on scratch memory, as they would run in the network: by as many
// threads, and, if the model is larger than the cores' caches, each time with other weights.

#include "lowering/chooser.hpp"
#include "verdict.hpp"

namespace tenon::onednn {

// Empty times where the contestants take more than budget_ns.
Times hold_contest(Contest contest, int64_t budget_ns);

}  // namespace tenon::onednn
