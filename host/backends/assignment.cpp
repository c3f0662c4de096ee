// SPDX-License-Identifier: Apache-2.0
#include "backends/assignment.hpp"

namespace tenon::host {
namespace {

void take(void* self, const tn_node_id* group, uint64_t n) {
  auto& all = *static_cast<Assignment*>(self);
  std::vector<size_t> members;
  for (uint64_t i = 0; i < n; ++i) {
    auto found = all.index.find(group[i]);
    if (found == all.index.end() || all.backend[found->second] != kUnclaimed) return;
    if (all.is_lost(group[i])) return;
    members.push_back(found->second);
  }
  for (size_t member : members)
    all.backend[member] = all.asking;
  if (members.size() > 1) all.groups.push_back(std::move(members));
}

void refuse(void* self, tn_node_id node, tn_str why) {
  auto& all = *static_cast<Assignment*>(self);
  auto found = all.index.find(node);
  if (found != all.index.end()) all.refusals[found->second][all.asking] = view(why);
}

Status ask_all(Assignment& all, const BackendUses& backends) {
  for (size_t b = 0; b < backends.size(); ++b) {
    const BackendUse& use = *backends[b];
    all.asking = static_cast<int>(b);
    tn_claims claims{&all, take, refuse};
    TN_CHECK(use.called("claim", use.table->claim(use.self, all.graph, use.device, &claims)));
  }
  return {};
}

}  // namespace

std::string Assignment::name(tn_node_id node) const {
  return std::string(view(graph_service()->node_name(graph, node)));
}

bool Assignment::is_lost(tn_node_id node) const {
  return !lost->empty() && lost->count({name(node), asking});
}

Result<Assignment> assign(const tn_graph& graph, const BackendUses& backends, const Lost& lost) {
  Assignment all;
  all.graph = &graph;
  all.lost = &lost;
  all.nodes = graph.tables->order;
  const size_t n = all.nodes.size();
  all.index.reserve(n);
  for (size_t i = 0; i < n; ++i)
    all.index[all.nodes[i]] = i;
  all.backend.assign(n, kUnclaimed);
  all.refusals.resize(n);
  TN_CHECK(ask_all(all, backends));
  for (size_t i = 0; i < n && !lost.empty(); ++i) {
    std::string name = all.name(all.nodes[i]);
    for (auto at = lost.lower_bound({name, 0}); at != lost.end() && at->first.first == name; ++at)
      all.refusals[i][at->first.second] = at->second;
  }
  return all;
}

}  // namespace tenon::host
