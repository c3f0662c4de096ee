// SPDX-License-Identifier: Apache-2.0
#include "plan/partition.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/edit.hpp"
#include "graph/op_table.hpp"

namespace tenon::host {
namespace {

constexpr int kUnclaimed = -2;

struct Assignment {
  const tn_graph* graph;
  std::vector<tn_node_id> nodes;  // in topological order
  std::unordered_map<tn_node_id, size_t> index;
  std::vector<int> backend;
  std::vector<std::vector<size_t>> groups;
  std::vector<std::map<int, std::string>> refusals;  // per node, by backend
  const Lost* lost = nullptr;
  int asking = 0;

  std::string name(tn_node_id node) const {
    return std::string(view(graph_service()->node_name(graph, node)));
  }
  bool is_lost(tn_node_id node) const {
    return !lost->empty() && lost->count({name(node), asking});
  }
};

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

std::string op_name(const tn_graph* graph, tn_node_id node) {
  tn_str domain{}, type{};
  Status ignored(graph_service()->node_op(graph, node, &domain, &type));
  return domain.len ? cat(view(domain), ".", view(type)) : std::string(view(type));
}

Status ask_all(Assignment& all, const std::vector<std::unique_ptr<BackendUse>>& backends) {
  for (size_t b = 0; b < backends.size(); ++b) {
    const BackendUse& use = *backends[b];
    all.asking = static_cast<int>(b);
    tn_claims claims{&all, take, refuse};
    TN_CHECK(use.called("claim", use.table->claim(use.self, all.graph, use.device, &claims)));
  }
  return {};
}

Result<Assignment> assign(const tn_graph* graph,
                          const std::vector<std::unique_ptr<BackendUse>>& backends,
                          const Lost& lost) {
  Assignment all;
  all.graph = graph;
  all.lost = &lost;
  uint64_t n = graph_service()->count(graph, TN_LIST_NODES);
  for (uint64_t i = 0; i < n; ++i) {
    all.nodes.push_back(graph_service()->node_at(graph, i));
    all.index[all.nodes.back()] = i;
  }
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

// Each of the nodes by its pieces, in a try: nodes that cannot be taken apart stay.
using Pieces = std::map<tn_node_id, std::vector<tn_node_id>>;
Result<Pieces> take_apart(tn_graph* graph, const std::vector<tn_node_id>& nodes) {
  TN_TRY(begun, begin_edit(graph));
  std::unique_ptr<tn_edit> edit(begun);
  Pieces out;
  for (tn_node_id node : nodes) {
    std::unordered_set<tn_node_id> before(edit->tables().order.begin(), edit->tables().order.end());
    if (!edit->decompose(node).ok()) continue;
    std::vector<tn_node_id>& pieces = out[node];
    for (tn_node_id id : edit->tables().order)
      if (!before.count(id)) pieces.push_back(id);
  }
  TN_CHECK(edit->commit());
  return out;
}

// By the order of the plan's list; unclaimed comes last.
size_t rank_of(int backend) {
  return backend == kUnclaimed ? SIZE_MAX : static_cast<size_t>(backend);
}

bool is_composite(const tn_graph* graph, tn_node_id node) {
  const tn_op* row = op_service()->of(graph, node);
  return !row || row->decompose;
}

// A trial in which refused nodes are in pieces, and composite pieces that nobody more wanted takes
// in pieces again.
class Trial {
 public:
  Trial(const Assignment& whole, const std::vector<std::unique_ptr<BackendUse>>& backends)
      : whole_(whole), backends_(backends), graph_(Ref<tn_graph>::take(clone(*whole.graph))) {}

  // Those of the nodes whose pieces all run.
  Result<std::vector<tn_node_id>> opened(const std::vector<tn_node_id>& nodes, const Lost& lost) {
    if (Result<Pieces> made = take_apart(graph_.get(), nodes); made.ok()) pieces_ = *made;
    for (int level = 0;; ++level) {
      TN_TRY(after, assign(graph_.get(), backends_, lost));
      const std::vector<tn_node_id> composites = still_composite(after);
      if (composites.empty() || level == kMostLevels) return all_of_whose_pieces_run(after);
      Result<Pieces> inner = take_apart(graph_.get(), composites);
      if (!inner.ok() || inner->empty()) return all_of_whose_pieces_run(after);
      put_in_place(*inner);
    }
  }

 private:
  static constexpr int kMostLevels = 8;  // of composites within composites

  bool runs(tn_node_id node, tn_node_id piece, const Assignment& after) const {
    const size_t whole = rank_of(whole_.backend[whole_.index.at(node)]);
    const tn_op* row = op_service()->of(graph_.get(), piece);
    const bool is_hosts = whole == SIZE_MAX && (!row || row->traits & TN_OP_CONTROL);
    return is_hosts || rank_of(after.backend[after.index.at(piece)]) < whole;
  }

  std::vector<tn_node_id> still_composite(const Assignment& after) const {
    std::vector<tn_node_id> out;
    for (const auto& [node, pieces] : pieces_)
      for (tn_node_id piece : pieces)
        if (!runs(node, piece, after) && is_composite(graph_.get(), piece)) out.push_back(piece);
    return out;
  }

  std::vector<tn_node_id> all_of_whose_pieces_run(const Assignment& after) const {
    std::vector<tn_node_id> out;
    for (const auto& [node, pieces] : pieces_)
      if (std::ranges::all_of(
              pieces, [&, &from = node](tn_node_id piece) { return runs(from, piece, after); }))
        out.push_back(node);
    return out;
  }

  void put_in_place(const Pieces& inner) {
    for (auto& [node, pieces] : pieces_) {
      std::vector<tn_node_id> now;
      for (tn_node_id piece : pieces) {
        auto found = inner.find(piece);
        if (found == inner.end())
          now.push_back(piece);
        else
          now.insert(now.end(), found->second.begin(), found->second.end());
      }
      pieces = std::move(now);
    }
  }

  const Assignment& whole_;
  const std::vector<std::unique_ptr<BackendUse>>& backends_;
  Ref<tn_graph> graph_;
  Pieces pieces_;  // of nodes of the whole graph
};

// What a backend refuses whole it may take in pieces, when all go to backends that are more wanted;
// of what is unclaimed also to the host (control flow), or apart again (functions). Whether any
// was.
Result<bool> open_refused(const Assignment& all,
                          tn_graph* graph,
                          const std::vector<std::unique_ptr<BackendUse>>& backends,
                          const Lost& lost) {
  std::vector<tn_node_id> refused;
  for (size_t i = 0; i < all.nodes.size(); ++i)
    if (all.backend[i] != 0 && is_composite(graph, all.nodes[i])) refused.push_back(all.nodes[i]);
  if (refused.empty()) return false;
  TN_TRY(opened, Trial(all, backends).opened(refused, lost));
  if (!opened.empty()) TN_CHECK(take_apart(graph, opened).status());
  return !opened.empty();
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
  TN_TRY(all, assign(graph, backends, lost));
  for (;;) {
    TN_TRY(opened, open_refused(all, graph, backends, lost));
    if (!opened) break;
    TN_TRY(again, assign(graph, backends, lost));
    all = std::move(again);
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
