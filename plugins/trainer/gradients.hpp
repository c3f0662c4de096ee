// SPDX-License-Identifier: Apache-2.0
#pragma once
// The names by which passes of a step find what others left: the outputs grad/NAME of autodiff, and
// which parameters rest together.

#include <string_view>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::trainer {

inline constexpr std::string_view kGradient = "grad/";

// Text note on a parameter that some updates leave alone: the name of the layer that it rests with.
inline constexpr std::string_view kRestsWithNote = "rests_with";

struct Gradient {
  uint64_t place;  // among the graph's outputs
  Value value;
};

inline Result<std::vector<Gradient>> gradients_of(Graph graph) {
  std::vector<Gradient> found;
  std::vector<Value> outputs = graph.outputs();
  for (uint64_t i = 0; i < outputs.size(); ++i)
    if (graph.output_name(i).starts_with(kGradient)) found.push_back({i, outputs[i]});
  if (found.empty())
    return Status(
        TN_FAILED_PRECONDITION,
        "expected outputs called grad/NAME, got none; apply autodiff.value_and_grad first");
  return found;
}

}  // namespace tenon::trainer
