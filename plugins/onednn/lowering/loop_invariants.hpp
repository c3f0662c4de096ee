// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps of a loop's body that read only what is the same in each iteration (weights that are
// captured, packed or converted) run once: they move to the front of the plan, where later
// iterations begin behind them, and what they write stays in the arena.

#include "plan.hpp"

namespace tenon::onednn {

// Follows the steps of a plan in order. Which of its buffers a step writes is not known, so one
// that it alone has touched so far is its result, and one that other steps have touched is not the
// same for what comes behind them.
class Invariants {
 public:
  // n_captured: how many inputs, the last ones, are the same in each iteration.
  explicit Invariants(size_t n_captured) : n_captured_(n_captured) {}
  // Whether the step makes the same in each iteration.
  bool add(const Plan& plan, const Step& step);
  // Whether a step that does has made what is in this buffer: nothing may be written over it.
  bool is_kept(int buffer) const { return state_of(buffer) >= kMade; }

  // Whether what is in this buffer is the same in each iteration.
  bool is_steady(const Plan& plan, int buffer) const;

 private:
  enum State : uint8_t { kUntouched, kVaries, kMade, kMadeAndRead };
  State state_of(int buffer) const {
    return size_t(buffer) < states_.size() ? states_[size_t(buffer)] : kUntouched;
  }

  size_t n_captured_;
  std::vector<State> states_;  // by buffer
};

// Sets plan.n_prologue.
void hoist_invariants(Plan& plan, size_t n_captured);

}  // namespace tenon::onednn
