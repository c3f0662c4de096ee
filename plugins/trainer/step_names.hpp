// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is found by its name in the graph of a step.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "parameters.hpp"

namespace tenon::trainer {

// Those of the names that are states: the loss may not depend on all of them.
inline std::vector<std::string> states_among(Graph graph, const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (Value state : graph.list(TN_LIST_STATES))
    if (std::find(names.begin(), names.end(), state.name()) != names.end())
      out.emplace_back(state.name());
  return out;
}

// Names of what a step is given besides its batch, which is its first inputs; in their order.
inline std::vector<std::string> inputs_behind(Graph graph, size_t batch) {
  const std::vector<Value> states = graph.list(TN_LIST_STATES);
  std::vector<std::string> out;
  for (Value input : graph.inputs()) {
    if (std::find(states.begin(), states.end(), input) != states.end()) continue;
    if (batch > 0)
      --batch;
    else
      out.emplace_back(input.name());
  }
  return out;
}

// Constants of floats, by name.
inline Weights named_constants(Graph graph) {
  Weights out;
  for (Value constant : graph.constants())
    if (is_float(constant.dtype())) out[std::string(constant.name())] = constant.constant();
  return out;
}

inline bool is_state_output(Graph graph, Value value) {
  for (Value state : graph.list(TN_LIST_STATES, 1))
    if (state == value) return true;
  return false;
}

// Places among the results of a run, where the outputs of states are left out.
inline std::optional<size_t> result_named(Graph graph, std::string_view name) {
  std::vector<Value> outputs = graph.outputs();
  size_t at = 0;
  for (uint64_t i = 0; i < outputs.size(); ++i) {
    bool is_state = is_state_output(graph, outputs[i]);
    if (!is_state && graph.output_name(i) == name) return at;
    at += !is_state;
  }
  return std::nullopt;
}

}  // namespace tenon::trainer
