// SPDX-License-Identifier: Apache-2.0
#include "loop_invariants.hpp"

#include <algorithm>
#include <utility>

namespace tenon::onednn {
namespace {

std::vector<int> buffers_of(const Step& step) {
  std::vector<int> buffers;
  for (const Argument& argument : step.arguments)
    buffers.push_back(argument.place.buffer);
  for (const Place& place : step.places)
    if (place.buffer != kNone) buffers.push_back(place.buffer);
  return buffers;
}

}  // namespace

bool Invariants::is_steady(const Plan& plan, int buffer) const {
  const Buffer& one = plan.buffers[size_t(buffer)];
  switch (one.kind) {
    case Buffer::Kind::kConstant:
      return true;
    case Buffer::Kind::kInput:
      return static_cast<size_t>(one.index) + n_captured_ >= plan.input_buffers.size();
    case Buffer::Kind::kArena:
      return state_of(buffer) == kUntouched || state_of(buffer) == kMade;
    default:
      return false;
  }
}

bool Invariants::add(const Plan& plan, const Step& step) {
  const std::vector<int> buffers = buffers_of(step);
  const bool is_invariant = std::all_of(buffers.begin(), buffers.end(),
                                        [&](int buffer) { return is_steady(plan, buffer); });
  states_.resize(plan.buffers.size(), kUntouched);
  for (int buffer : buffers) {
    State& state = states_[size_t(buffer)];
    if (is_invariant)
      state = kMade;
    else
      state = state >= kMade ? kMadeAndRead : kVaries;
  }
  return is_invariant;
}

void hoist_invariants(Plan& plan, size_t n_captured) {
  Invariants invariants(n_captured);
  std::vector<Step> front, rest;
  for (Step& step : plan.steps) {
    const bool is_invariant = invariants.add(plan, step);
    (is_invariant ? front : rest).push_back(std::move(step));
  }
  plan.n_prologue = front.size();
  plan.steps = std::move(front);
  std::move(rest.begin(), rest.end(), std::back_inserter(plan.steps));
}

}  // namespace tenon::onednn
