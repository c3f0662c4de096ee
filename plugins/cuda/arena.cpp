// SPDX-License-Identifier: Apache-2.0
// Offsets in one block for all buffers that live only during a run, from the steps that use them.
#include "tenon/sdk/backend/arena.hpp"

#include "plan.hpp"

namespace tenon::cuda {

Status lay_out_arena(Plan& plan) {
  backend::Lives lives(plan.buffers.size());
  for (size_t s = 0; s < plan.steps.size(); ++s)
    for (const std::vector<int>* list : {&plan.steps[s].reads, &plan.steps[s].writes})
      for (int buffer : *list)
        lives.touch(buffer, s);
  auto bytes = [&](size_t i) {
    const Buffer& buffer = plan.buffers[i];
    return buffer.storage == Storage::kArena ? buffer.bytes : 0;
  };
  auto put = [&](size_t i, uint64_t offset) { plan.buffers[i].offset = offset; };
  TN_TRY(size, lives.place(kOwnAlign, bytes, put));
  plan.arena_bytes = size.bytes;
  plan.arena_lower_bound = size.lower_bound;
  if (size.lower_bound > 0) plan.peak_step = plan.steps[size.peak_step].name;
  return {};
}

}  // namespace tenon::cuda
