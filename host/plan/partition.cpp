// SPDX-License-Identifier: Apache-2.0
#include "plan/partition.hpp"

#include <algorithm>
#include <ranges>

#include "graph/op_table.hpp"
#include "plan/decompositions.hpp"

namespace tenon::host {
namespace {

std::string op_name(const tn_graph* graph, tn_node_id id) {
  const Node& node = *graph->tables->nodes.find(id);
  return node.domain.empty() ? node.type : cat(node.domain, ".", node.type);
}

std::string why_no_row(const Assignment& all, tn_node_id id) {
  const Node& node = *all.graph->tables->nodes.find(id);
  return all.graph->ctx->session->ops->why_none(*all.graph->tables, node.domain, node.type);
}

// Unclaimed control-flow nodes are the host's; for other nodes that is an error.
Status assign_unclaimed(Assignment& all,
                        const BackendUses& backends,
                        std::vector<Fallback>* fallbacks) {
  for (size_t i = 0; i < all.nodes.size(); ++i) {
    tn_node_id node = all.nodes[i];
    const tn_op* row = op_service()->of(all.graph, node);
    if (all.backend[i] == kUnclaimed && row && row->traits & TN_OP_CONTROL) {
      all.backend[i] = kHostBackend;
    }
    std::string why;
    for (const auto& [backend, reason] : all.refusals[i]) {
      if (!why.empty()) why += "; ";
      why += cat(backends[backend]->id, ": ", reason);
    }
    if (all.backend[i] == kUnclaimed) {
      return {TN_UNIMPLEMENTED, cat("no backend runs node ", all.name(node), " of operator ",
                                    op_name(all.graph, node), why.empty() ? "" : ": ", why,
                                    row ? "" : why_no_row(all, node))};
    }
    auto lost = all.lost->lower_bound({all.name(node), 0});
    bool was_lost = lost != all.lost->end() && lost->first.first == all.name(node);
    if (all.backend[i] > 0 && (was_lost || backends[all.backend[i]]->last_resort)) {
      fallbacks->push_back({all.name(node), op_name(all.graph, node),
                            why.empty() ? cat(preferred_of(backends).id, ": not claimed") : why});
    }
  }
  return {};
}

struct Edge {
  size_t from, to;
  bool rises;  // `to` is deeper; else no less deep
};

std::vector<Edge> edges_of(const Assignment& all) {
  std::vector<Edge> out;
  for (size_t i = 0; i < all.nodes.size(); ++i)
    for (tn_value_id input : all.graph->tables->nodes.find(all.nodes[i])->inputs) {
      auto from = all.index.find(graph_service()->producer(all.graph, input, nullptr));
      if (from == all.index.end()) continue;
      // Each control-flow node is a partition of its own. What late partitions repeat is no
      // partition, but they read what it is made of.
      const int ours = all.backend[from->second], theirs = all.backend[i];
      const bool is_inside = ours == kRepeated || (ours == kLateBackend && theirs == kRepeated);
      bool differs = ours != theirs && !is_inside;
      out.push_back({from->second, i, differs || all.backend[i] == kHostBackend});
    }
  return out;
}

// The least depths from these on, by sweeps, repeated while groups pull their members to one depth.
// A group with a path through another backend's node would pull for ever: the backend's mistake.
Status converge(std::vector<size_t>& depth,
                const std::vector<Edge>& edges,
                const std::vector<std::vector<size_t>>& groups) {
  size_t sweeps = 0;
  for (bool changed = true; changed;) {
    changed = false;
    if (++sweeps > depth.size() + 2)
      return {TN_INTERNAL, "a backend claimed a group of nodes that is not convex"};
    auto raise = [&](size_t node, size_t least) {
      changed = changed || depth[node] < least;
      depth[node] = std::max(depth[node], least);
    };
    for (const Edge& edge : edges)
      raise(edge.to, depth[edge.from] + edge.rises);
    for (const auto& group : groups) {
      size_t deepest = 0;
      for (size_t member : group)
        deepest = std::max(deepest, depth[member]);
      for (size_t member : group)
        raise(member, deepest);
    }
  }
  return {};
}

// Late nodes go as deep as those that read them allow, so that what waits for one size is compiled
// together.
void sink_late(const Assignment& all, const std::vector<Edge>& edges, std::vector<size_t>& depth) {
  std::vector<size_t> most(depth.size(), SIZE_MAX);
  auto finish = [&](size_t node) {
    const bool may_sink = all.backend[node] == kLateBackend || all.backend[node] == kRepeated;
    if (may_sink && most[node] != SIZE_MAX) depth[node] = most[node];
  };
  for (const Edge& edge : std::views::reverse(edges)) {  // they lie in the order of `to`
    finish(edge.to);
    most[edge.from] = std::min(most[edge.from], depth[edge.to] - edge.rises);
  }
  for (size_t node = 0; node < depth.size(); ++node)
    finish(node);
}

// As early as possible, or as late where fewer values then go from partition to partition: what
// only nodes behind another backend's result read is one partition with them.
Result<std::vector<size_t>> depths(const Assignment& all) {
  std::vector<Edge> edges = edges_of(all);
  std::vector<size_t> early(all.nodes.size(), 0), late;
  TN_CHECK(converge(early, edges, all.groups));
  std::map<int, size_t> last;  // depth of each backend
  for (size_t i = 0; i < early.size(); ++i)
    last[all.backend[i]] = std::max(last[all.backend[i]], early[i]);
  for (int backend : all.backend)  // from the other end
    late.push_back(early.size() - last[backend]);
  std::reverse(edges.begin(), edges.end());
  for (Edge& edge : edges)
    std::swap(edge.from, edge.to);
  TN_CHECK(converge(late, edges, all.groups));
  for (size_t& depth : late)
    depth = early.size() - depth;
  auto n_cut = [&](const auto& depth) {
    return std::ranges::count_if(edges, [&](auto& e) { return depth[e.from] != depth[e.to]; });
  };
  std::vector<size_t> depth = n_cut(late) < n_cut(early) ? std::move(late) : std::move(early);
  std::ranges::reverse(edges);
  for (Edge& edge : edges)
    std::swap(edge.from, edge.to);
  sink_late(all, edges, depth);
  return depth;
}

}  // namespace

Result<std::vector<Partition>> partition(tn_graph* graph,
                                         const BackendUses& backends,
                                         const Lost& lost,
                                         LateSizes late_sizes,
                                         std::vector<Fallback>* fallbacks) {
  TN_TRY(all, assign(*graph, backends, lost));
  Decompositions decompositions(backends, lost);
  for (;;) {
    assign_late(all, backends, late_sizes);
    TN_TRY(decomposed, decompositions.of_refused(all));
    if (!decomposed) break;
    graph->tables = decomposed->graph->tables;
    graph->edits = decomposed->graph->edits;
    all = std::move(decomposed->assigned);
    all.graph = graph;
  }
  TN_CHECK(assign_unclaimed(all, backends, fallbacks));

  TN_TRY(depth, depths(all));
  std::map<std::tuple<size_t, int, size_t>, Partition> partitions;
  for (size_t i = 0; i < all.nodes.size(); ++i) {
    if (all.backend[i] == kRepeated) continue;
    size_t alone = all.backend[i] == kHostBackend ? i + 1 : 0;
    Partition& partition = partitions[{depth[i], all.backend[i], alone}];
    partition.backend = all.backend[i];
    partition.depth = depth[i];
    partition.nodes.push_back(all.nodes[i]);
  }
  std::vector<Partition> out;
  for (auto& [key, partition] : partitions)
    out.push_back(std::move(partition));
  if (late_sizes == LateSizes::kNone) return out;
  const Lateness lateness(*graph);
  std::unordered_map<tn_node_id, Partition*> makers;
  for (Partition& partition : out) {
    if (partition.is_late()) partition.repeated = numbers_for(*graph, lateness, partition.nodes);
    for (tn_node_id node : partition.nodes)
      makers[node] = &partition;
  }
  for (Partition& partition : out)
    for (tn_node_id node : partition.repeated)
      for (tn_value_id input : graph->tables->nodes.find(node)->inputs) {
        auto maker = makers.find(graph_service()->producer(graph, input, nullptr));
        if (maker != makers.end() && maker->second != &partition)
          maker->second->lent.push_back(input);
      }
  return out;
}

}  // namespace tenon::host
