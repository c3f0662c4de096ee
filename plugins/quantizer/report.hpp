// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a pass says about its work: nodes taken, nodes left in float and why, ranges.

#include <string>

#include <nlohmann/json.hpp>

#include "assignment.hpp"
#include "insertion.hpp"

namespace tenon::quantizer {

// {"quantized": [...], "float": [{"node", "op", "why"}], "counts": {...}}
nlohmann::ordered_json report_nodes(const Assignment& assignment,
                                    const std::vector<WeightNote>& weights);
// Of the weights of products, as floats, before an edit: {"all", "float", "node", "why"}, how many
// bytes there are, how many stay in float, and the node with most of these.
nlohmann::ordered_json weight_bytes(const Assignment& assignment);
// How many zeros of trained weights stay zeros, and how many do not: {"held", "trained"}; logged
// too.
nlohmann::ordered_json report_zeros(tn_ctx* ctx, const std::vector<WeightNote>& weights);
// Logs how many nodes are left in float, and each name by reason, so that nothing is left silently.
void log_left(tn_ctx* ctx, const Assignment& assignment);
// Of a list of {"node", "why"}, the first ones in words behind `before`; "" of an empty list.
std::string first_reasons(const nlohmann::ordered_json& left, std::string_view before);
// "nothing to quantize" with the commonest reasons, when no compute node was taken.
Status check_something_taken(const Assignment& assignment);

}  // namespace tenon::quantizer
