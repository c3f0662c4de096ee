// SPDX-License-Identifier: Apache-2.0
#include "plan/decompositions.hpp"

#include <algorithm>
#include <span>

#include "graph/edit.hpp"
#include "graph/op_table.hpp"

namespace tenon::host {
namespace {

constexpr int kMostLevels = 8;  // of composites within composites

using Pieces = decltype(DecomposedGraph::pieces);

// Replaces each of the nodes by its pieces; nodes that have no decomposition stay.
Result<Pieces> decompose_nodes(tn_graph* graph, const std::vector<tn_node_id>& nodes) {
  TN_TRY(edit, begin_edit(graph));
  edit->share();
  Pieces out;
  for (tn_node_id node : nodes) {
    const size_t n_before = edit->asked_for().size();
    if (!edit->decompose(node).ok()) continue;
    std::vector<tn_node_id>& pieces = out[node];  // none of a function that hands its inputs on
    for (tn_node_id piece : std::span(edit->asked_for()).subspan(n_before))
      if (edit->tables().nodes.find(piece)) pieces.push_back(piece);
  }
  TN_CHECK(edit->commit());
  return out;
}

// Position in the plan's order of backends; unclaimed nodes come last.
size_t rank_of(int backend) {
  return backend == kUnclaimed ? SIZE_MAX : static_cast<size_t>(backend);
}

bool is_composite(const tn_graph* graph, tn_node_id node) {
  const tn_op* row = op_service()->of(graph, node);
  return !row || row->decompose;
}

// The pieces of each node of a graph. Pieces that no backend earlier in the plan's order claims are
// decomposed again.
class Trial {
 public:
  Trial(const Assignment& whole, Pieces pieces) : whole_(whole), pieces_(std::move(pieces)) {}

  std::vector<tn_node_id> still_composite(const Assignment& after) const {
    std::vector<tn_node_id> out;
    for (const auto& [node, pieces] : pieces_)
      for (tn_node_id piece : pieces)
        if (!runs(node, piece, after) && is_composite(after.graph, piece)) out.push_back(piece);
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());  // nodes may share a piece
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

  void replace_pieces(const Pieces& inner) {
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

 private:
  bool runs(tn_node_id node, tn_node_id piece, const Assignment& after) const {
    const size_t whole = rank_of(whole_.backend[whole_.index.at(node)]);
    const tn_op* row = op_service()->of(after.graph, piece);
    const bool is_hosts = whole == SIZE_MAX && (!row || row->traits & TN_OP_CONTROL);
    return is_hosts || rank_of(after.backend[after.index.at(piece)]) < whole;
  }

  const Assignment& whole_;
  Pieces pieces_;  // of nodes of the whole graph
};

}  // namespace

Result<DecomposedGraph*> Decompositions::decomposed(const tn_graph& graph,
                                                    std::vector<tn_node_id> nodes) {
  for (DecomposedGraph& one : made_)
    if (one.from == graph.tables && one.nodes == nodes) return &one;
  DecomposedGraph made{graph.tables, std::move(nodes), Ref<tn_graph>::take(clone(graph)), {}, {}};
  if (Result<Pieces> pieces = decompose_nodes(made.graph.get(), made.nodes); pieces.ok())
    made.pieces = std::move(*pieces);
  TN_TRY(assigned, assign(*made.graph.get(), backends_, lost_));
  made.assigned = std::move(assigned);
  return &made_.emplace_back(std::move(made));
}

Result<DecomposedGraph*> Decompositions::of_refused(const Assignment& all) {
  std::vector<tn_node_id> refused;
  for (size_t i = 0; i < all.nodes.size(); ++i) {
    const bool is_refused = all.backend[i] > 0 || all.backend[i] == kUnclaimed;
    if (is_refused && is_composite(all.graph, all.nodes[i])) refused.push_back(all.nodes[i]);
  }
  std::ranges::sort(refused);
  if (refused.empty()) return nullptr;
  TN_TRY(first, decomposed(*all.graph, refused));
  Trial trial(all, first->pieces);
  const DecomposedGraph* last = first;
  for (int level = 0; level < kMostLevels; ++level) {
    std::vector<tn_node_id> composites = trial.still_composite(last->assigned);
    if (composites.empty()) break;
    TN_TRY(inner, decomposed(*last->graph.get(), std::move(composites)));
    if (inner->pieces.empty()) break;
    trial.replace_pieces(inner->pieces);
    last = inner;
  }
  std::vector<tn_node_id> chosen = trial.all_of_whose_pieces_run(last->assigned);
  if (chosen.empty()) return nullptr;
  // Nodes without a decomposition have changed nothing.
  if (chosen.size() == first->pieces.size()) return first;
  TN_TRY(part, decomposed(*all.graph, std::move(chosen)));
  return part->pieces.empty() ? nullptr : part;
}

}  // namespace tenon::host
