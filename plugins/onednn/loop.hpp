// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a step that repeats a plan of its own (lowering/plan.hpp: Loop).

#include "executable.hpp"

namespace tenon::onednn {

// pointers: of the step's places. room: Loop::n_pointers() pointers that this may write to.
// Stops between two iterations where `outer` may be cancelled. *where: the body's step that failed.
const char* run_loop(const Loop& loop,
                     void* const* pointers,
                     void** room,
                     const RunRequest& outer,
                     const Step** where);

}  // namespace tenon::onednn
