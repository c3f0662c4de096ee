// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a pass says about its work.

#include <nlohmann/json.hpp>

#include "tenon/sdk/run.hpp"

#include "cost.hpp"
#include "groups.hpp"

namespace tenon::pruner {

// {"layer", "channels", "width", "members": [{"node", "op", "value", "axis", "role"}]}
nlohmann::ordered_json report_group(const Group& group);
// [{"node", "op", "weight", "axis", "channels", "why"}]
nlohmann::ordered_json report_barriers(const Groups& groups);
// {"parameters": {"before", "after", "ratio"}, "macs": the same}
nlohmann::ordered_json report_costs(const Cost& before, const Cost& after);
// The multiply-adds of nodes that channels pass through, null where they are not known: a share
// that went says little of a model that is held by barriers.
nlohmann::ordered_json report_prunable(const tn_graph* graph, const Groups& groups);
// Which layers have weights that are seen once constants are folded; empty: none.
std::string why_unfolded(Graph graph);
// Why a model has nothing to prune: its weights are quantized or not folded, or as `otherwise`
// says.
std::string why_no_layers(Graph graph, std::string_view otherwise);
void log_barriers(tn_ctx* ctx, const Groups& groups);

}  // namespace tenon::pruner
