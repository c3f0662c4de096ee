// SPDX-License-Identifier: Apache-2.0
#include "plan/openings.hpp"

#include <algorithm>
#include <span>

#include "graph/edit.hpp"
#include "graph/op_table.hpp"

namespace tenon::host {
namespace {

constexpr int kMostLevels = 8;  // of composites within composites

using Pieces = decltype(OpenedGraph::pieces);

// Each of the nodes by its pieces, in a try: nodes that cannot be taken apart stay.
Result<Pieces> take_nodes_apart(tn_graph* graph, const std::vector<tn_node_id>& nodes) {
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

// By the order of the plan's list; unclaimed comes last.
size_t rank_of(int backend) {
  return backend == kUnclaimed ? SIZE_MAX : static_cast<size_t>(backend);
}

bool is_composite(const tn_graph* graph, tn_node_id node) {
  const tn_op* row = op_service()->of(graph, node);
  return !row || row->decompose;
}

// Nodes of a whole graph by their pieces, which are taken in pieces again where nobody more wanted
// takes them.
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

Result<OpenedGraph*> Openings::take_apart(const tn_graph& graph, std::vector<tn_node_id> nodes) {
  for (OpenedGraph& one : made_)
    if (one.from == graph.tables && one.nodes == nodes) return &one;
  OpenedGraph made{graph.tables, std::move(nodes), Ref<tn_graph>::take(clone(graph)), {}, {}};
  if (Result<Pieces> pieces = take_nodes_apart(made.graph.get(), made.nodes); pieces.ok())
    made.pieces = std::move(*pieces);
  TN_TRY(assigned, assign(*made.graph.get(), backends_, lost_));
  made.assigned = std::move(assigned);
  return &made_.emplace_back(std::move(made));
}

Result<OpenedGraph*> Openings::of_refused(const Assignment& all) {
  std::vector<tn_node_id> refused;
  for (size_t i = 0; i < all.nodes.size(); ++i)
    if (all.backend[i] != 0 && is_composite(all.graph, all.nodes[i]))
      refused.push_back(all.nodes[i]);
  std::ranges::sort(refused);
  if (refused.empty()) return nullptr;
  TN_TRY(first, take_apart(*all.graph, refused));
  Trial trial(all, first->pieces);
  const OpenedGraph* last = first;
  for (int level = 0; level < kMostLevels; ++level) {
    std::vector<tn_node_id> composites = trial.still_composite(last->assigned);
    if (composites.empty()) break;
    TN_TRY(inner, take_apart(*last->graph.get(), std::move(composites)));
    if (inner->pieces.empty()) break;
    trial.put_in_place(inner->pieces);
    last = inner;
  }
  std::vector<tn_node_id> opened = trial.all_of_whose_pieces_run(last->assigned);
  if (opened.empty()) return nullptr;
  // Those that cannot be taken apart have changed nothing.
  if (opened.size() == first->pieces.size()) return first;
  TN_TRY(part, take_apart(*all.graph, std::move(opened)));
  return part->pieces.empty() ? nullptr : part;
}

}  // namespace tenon::host
