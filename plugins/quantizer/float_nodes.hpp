// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is computed in floats between the first QuantizeLinear and the last DequantizeLinear.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tenon/sdk/graph.hpp"

namespace tenon::quantizer {

bool holds_floats(Value v);
// Nodes with floats among their inputs or results that read what a QuantizeLinear has stored, and
// from which a DequantizeLinear is reached.
std::vector<Node> floats_between(Graph graph);
// [{"node", "op"}]
nlohmann::ordered_json named(const std::vector<Node>& nodes);
// The first five, for a message.
std::string first_names(const std::vector<Node>& nodes);

}  // namespace tenon::quantizer
