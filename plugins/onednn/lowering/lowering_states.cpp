// SPDX-License-Identifier: Apache-2.0
// States in a plan: a step writes a new value in the place of the old one where it can, and what is
// left is copied at the end.

#include <algorithm>

#include "lowering.hpp"

namespace tenon::onednn {

namespace {

bool is_there(const View& result, const View& state) {
  return result.buffer == state.buffer && result.offset == 0 &&
         same_strides(state.dims, result.strides, state.strides);
}

}  // namespace

// New values that no step put in their place are copied when all else is done. One that is a view
// of a state goes aside first.
void Lowering::place_states() {
  std::vector<View> results;
  for (const auto& [before, after] : graph_.states) {
    View found = view(after);
    if (found.channels != nullptr) found = dequantized_constant(found);
    bool is_of_state = plan_.buffers[found.buffer].kind == Buffer::Kind::kState;
    if (is_of_state && !is_there(found, view(before))) {
      View aside = found;
      aside.offset = 0;
      aside.strides = dense_strides_like(found.dims, found.strides);
      aside.buffer = scratch(found.bytes());
      add_copy("state " + graph_.values[after].name, found, aside);
      found = aside;
    }
    results.push_back(found);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const auto& [before, after] = graph_.states[i];
    if (is_there(results[i], view(before))) continue;
    plan_.first_commit = std::min(plan_.first_commit, plan_.steps.size());
    add_copy("state " + graph_.values[after].name, results[i], view(before));
  }
}

bool Lowering::is_state_result(int value) const {
  return std::any_of(graph_.states.begin(), graph_.states.end(),
                     [&](const auto& state) { return state.second == value; });
}

const View* Lowering::replaced_state(int value, int node) const {
  if (!options_.replaces_states) return nullptr;
  for (const auto& [before, after] : graph_.states) {
    if (after == value && !is_read_after(view(before), node)) return &view(before);
  }
  return nullptr;
}

}  // namespace tenon::onednn
