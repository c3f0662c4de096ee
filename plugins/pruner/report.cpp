// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <algorithm>
#include <map>

#include "tenon/sdk/multiplied.hpp"

namespace tenon::pruner {
namespace {

nlohmann::ordered_json compare(double before, double after) {
  return {{"before", before}, {"after", after}, {"ratio", before > 0 ? after / before : 1.0}};
}

const char* role_name(Kind kind) {
  constexpr const char* kNames[] = {"vector", "vector", "reads", "makes"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

nlohmann::ordered_json report_group(const Group& group) {
  nlohmann::ordered_json members = nlohmann::ordered_json::array();
  for (const Member& member : group.members)
    members.push_back({{"node", member.node.name()},
                       {"op", member.node.type()},
                       {"value", member.value.name()},
                       {"axis", member.axis},
                       {"role", role_name(member.kind)}});
  return {{"layer", group.layer},
          {"channels", group.n_channels()},
          {"width", group.width},
          {"members", std::move(members)}};
}

nlohmann::ordered_json report_barriers(const Groups& groups) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Barrier& one : groups.barriers())
    out.push_back({{"node", one.node.name()},
                   {"op", one.node.type()},
                   {"weight", one.weight.name()},
                   {"axis", one.axis},
                   {"channels", one.channels},
                   {"why", one.why}});
  return out;
}

nlohmann::ordered_json report_costs(const Cost& before, const Cost& after) {
  nlohmann::ordered_json out;
  out["parameters"] =
      compare(static_cast<double>(before.parameters), static_cast<double>(after.parameters));
  out["nonzero"] = compare(static_cast<double>(before.nonzero), static_cast<double>(after.nonzero));
  out["macs"] = nullptr;
  if (before.macs && after.macs) out["macs"] = compare(*before.macs, *after.macs);
  return out;
}

nlohmann::ordered_json report_prunable(const tn_graph* graph, const Groups& groups) {
  std::set<tn_node_id> nodes = groups.prunable(Graph{graph});
  auto macs = macs_of(graph, [&](tn_node_id id) { return nodes.contains(id); });
  return macs ? nlohmann::ordered_json(*macs) : nullptr;
}

std::string why_unfolded(Graph graph) {
  std::string names;
  for (Node node : graph.nodes()) {
    const std::vector<Value> operands = multiplied(node);
    if (std::any_of(operands.begin(), operands.end(),
                    [](Value value) { return is_computed_of_constants(value); }))
      names += cat(names.empty() ? "" : ", ", node.name());
  }
  return names.empty() ? ""
                       : cat("weights are computed from constants, those of ", names,
                             ": apply fusion.default first");
}

std::string why_no_layers(Graph graph, std::string_view otherwise) {
  for (Node node : graph.nodes())
    if (node.is("DequantizeLinear"))
      return cat("the weights are quantized, as ", node.name(), " (", node.type(),
                 ") says: prune the float model, or make it one by quantizer.dequantize (tenon "
                 "optimize --requantize)");
  const std::string unfolded = why_unfolded(graph);
  return unfolded.empty() ? std::string(otherwise) : unfolded;
}

void log_barriers(tn_ctx* ctx, const Groups& groups) {
  std::map<std::string, std::string> names;
  for (const Barrier& one : groups.barriers()) {
    std::string& list = names[one.why];
    list += cat(list.empty() ? "" : ", ", one.node.name());
  }
  for (const auto& [why, list] : names)
    log_line(ctx, TN_LOG_INFO, cat("channels that stay, because ", why, ": ", list));
}

}  // namespace tenon::pruner
