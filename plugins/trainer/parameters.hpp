// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which constants of a model are trained, and putting them back.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/graph.hpp"

namespace tenon::trainer {

struct ParameterChoice {
  std::vector<std::string> only;    // patterns; empty: all
  std::vector<std::string> frozen;  // patterns
  bool may_be_none = false;         // a model without any is none's mistake, where `only` is empty
};

// Names of constants that are trained: floats of rank 1 and up from which the outputs can be
// reached, running statistics and scales of quantization excepted. A note "train" on the constant
// goes first.
Result<std::vector<std::string>> find_parameters(Graph graph, const ParameterChoice& choice);

// Names of what would be such constants if it were not in bodies of control flow, where constants
// stay what they are.
std::vector<std::string_view> weights_of_bodies(Graph graph);

// "a, b, c and 4 more": the names that patterns could have meant, for messages.
std::string few_of(const std::vector<std::string_view>& names);

using Weights = std::map<std::string, Tensor>;

// Whether no element is infinite or NaN; true of other types than float32 and float64.
bool has_finite_numbers(const DLTensor& tensor);

// New numbers in the place of constants of these names, in the type that they have.
Status put_back(tn_graph* graph, const Weights& weights);

}  // namespace tenon::trainer
