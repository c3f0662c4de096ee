// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Scan and Loop have in common: a step that repeats the plan of the node's body
// (lowering/plan.hpp: Loop).

#include <string>

#include "lowering/lowering.hpp"

namespace tenon::onednn {

// How the inputs and outputs of the node are divided: control, states, scanned, captured; states,
// collected. The body has the same inputs, and so many outputs of the control in front.
struct RepeatedForm {
  size_t n_control = 0;
  size_t n_control_outputs = 0;
  size_t n_states = 0;
  size_t n_scanned = 0;
  size_t n_captured = 0;
  // Attributes of the node, where it has them.
  const char* scanned_directions = nullptr;
  const char* collected_directions = nullptr;

  size_t n_inputs() const { return n_control + n_states + n_scanned + n_captured; }
  size_t first_scanned() const { return n_control + n_states; }
  bool is_scanned(size_t input) const {
    return input >= first_scanned() && input < first_scanned() + n_scanned;
  }
};

// Why the body cannot be a plan that is repeated, or nothing.
std::string refuse_repeated(const Graph& graph, const Node& node, const RepeatedForm& form);

// The step, still without its control's places; `length` is how often the body runs, as far as it
// is known.
struct Repeated {
  Step step;
  std::shared_ptr<Loop> loop;
};
Repeated lower_repeated(Lowering& lowering,
                        const Node& node,
                        const Graph& body,
                        const RepeatedForm& form,
                        int64_t length);

}  // namespace tenon::onednn
