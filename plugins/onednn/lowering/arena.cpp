// SPDX-License-Identifier: Apache-2.0
// One block of memory for all intermediates and scratchpads.

#include "lowering.hpp"
#include "plan.hpp"

namespace tenon::onednn {

backend::Lives lives_of(const Plan& plan) {
  backend::Lives lives(plan.buffers.size());
  auto touch = [&](const Step& of, size_t step) {
    for (const Argument& argument : of.arguments)
      lives.touch(argument.place.buffer, step);
    for (const Place& place : of.places)
      lives.touch(place.buffer, step);
  };
  for (size_t step = 0; step < plan.steps.size(); ++step)
    touch(plan.steps[step], step);
  for (size_t step = 0; step < plan.n_prologue; ++step)
    touch(plan.steps[step], plan.steps.size() - 1);
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
  if (!size.ok()) throw CompileError(size.status().text());
  return *size;
}

}  // namespace tenon::onednn
