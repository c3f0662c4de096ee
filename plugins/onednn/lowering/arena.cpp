// SPDX-License-Identifier: Apache-2.0
// One block of memory for all intermediates and scratchpads.

#include "lowering.hpp"
#include "plan.hpp"

namespace tenon::onednn {

backend::Lives lives_of(const Plan& plan) {
  backend::Lives lives(plan.buffers.size());
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    for (const Argument& argument : plan.steps[step].arguments)
      lives.touch(argument.place.buffer, step);
    for (const Place& place : plan.steps[step].places)
      lives.touch(place.buffer, step);
  }
  return lives;
}

tn_arena_size lay_out_arena(Plan& plan) {
  auto bytes = [&](size_t i) {
    const Buffer& buffer = plan.buffers[i];
    return buffer.kind == Buffer::Kind::kArena ? buffer.bytes : 0;
  };
  auto put = [&](size_t i, uint64_t offset) {
    plan.buffers[i].arena_offset = static_cast<int64_t>(offset);
  };
  Result<tn_arena_size> size = lives_of(plan).place(64, bytes, put);
  if (!size.ok()) throw CompileError(size.status().message());
  return *size;
}

}  // namespace tenon::onednn
