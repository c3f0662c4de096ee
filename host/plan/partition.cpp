// SPDX-License-Identifier: Apache-2.0
#include "plan/partition.hpp"

#include <algorithm>

#include "graph/op_table.hpp"
#include "plan/openings.hpp"

namespace tenon::host {
namespace {

std::string op_name(const tn_graph* graph, tn_node_id node) {
  tn_str domain{}, type{};
  Status ignored(graph_service()->node_op(graph, node, &domain, &type));
  return domain.len ? cat(view(domain), ".", view(type)) : std::string(view(type));
}

// Unclaimed control-flow nodes are the host's; for other nodes that is an error.
Status assign_unclaimed(Assignment& all,
                        const std::vector<std::unique_ptr<BackendUse>>& backends,
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
      return {TN_UNIMPLEMENTED,
              cat("no backend runs node ", all.name(node), " of operator ",
                  op_name(all.graph, node), why.empty() ? "" : ": ", why,
                  row ? ""
                      : cat("; a plugin that brings this operator's row would make it run on the "
                            "reference backend",
                            all.graph->ctx->session->ops->hint(op_name(all.graph, node))))};
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

// Depths by one forward sweep, repeated while groups pull their members to one depth. A group with
// a path through another backend's node would pull for ever: that is the backend's mistake.
Result<std::vector<size_t>> depths(const Assignment& all) {
  const tn_host_graph& g = *graph_service();
  std::vector<size_t> depth(all.nodes.size(), 0);
  size_t sweeps = 0;
  for (bool changed = true; changed;) {
    changed = false;
    if (++sweeps > all.nodes.size() + 2) {
      return Status(TN_INTERNAL, "a backend claimed a group of nodes that is not convex");
    }
    for (size_t i = 0; i < all.nodes.size(); ++i) {
      uint64_t n_in = g.io_count(all.graph, all.nodes[i], TN_LIST_INPUTS);
      for (uint64_t k = 0; k < n_in; ++k) {
        tn_value_id value = g.io_at(all.graph, all.nodes[i], TN_LIST_INPUTS, k);
        auto found = all.index.find(g.producer(all.graph, value, nullptr));
        if (found == all.index.end()) continue;
        size_t from = found->second;
        // Each control-flow node is a partition of its own.
        bool same = all.backend[from] == all.backend[i] && all.backend[i] != kHostBackend;
        size_t least = depth[from] + (same ? 0 : 1);
        if (depth[i] < least) {
          depth[i] = least;
          changed = true;
        }
      }
    }
    for (const std::vector<size_t>& group : all.groups) {
      size_t deepest = 0;
      for (size_t member : group)
        deepest = std::max(deepest, depth[member]);
      for (size_t member : group) {
        if (depth[member] != deepest) changed = true;
        depth[member] = deepest;
      }
    }
  }
  return depth;
}

}  // namespace

Result<std::vector<Partition>> partition(tn_graph* graph,
                                         const std::vector<std::unique_ptr<BackendUse>>& backends,
                                         const Lost& lost,
                                         std::vector<Fallback>* fallbacks) {
  TN_TRY(all, assign(*graph, backends, lost));
  Openings openings(backends, lost);
  for (;;) {
    TN_TRY(opened, openings.of_refused(all));
    if (!opened) break;
    graph->tables = opened->graph->tables;
    graph->edits = opened->graph->edits;
    all = std::move(opened->assigned);
    all.graph = graph;
  }
  TN_CHECK(assign_unclaimed(all, backends, fallbacks));

  TN_TRY(depth, depths(all));
  std::map<std::tuple<size_t, int, size_t>, Partition> partitions;
  for (size_t i = 0; i < all.nodes.size(); ++i) {
    size_t alone = all.backend[i] == kHostBackend ? i + 1 : 0;
    Partition& partition = partitions[{depth[i], all.backend[i], alone}];
    partition.backend = all.backend[i];
    partition.depth = depth[i];
    partition.nodes.push_back(all.nodes[i]);
  }
  std::vector<Partition> out;
  for (auto& [key, partition] : partitions)
    out.push_back(std::move(partition));
  return out;
}

}  // namespace tenon::host
