// SPDX-License-Identifier: Apache-2.0
#pragma once
// Groups of pointwise nodes that run as one pass over memory. From the last node to the first: a
// node joins the group of its users when all of them are in one group, of the same shape. So a
// group has one result, that of its last node, and no way out of it leads back in.

#include <map>

#include "tenon/sdk/backend/graph.hpp"
#include "tenon/sdk/backend/program.hpp"

namespace tenon::backend {

class Groups {
 public:
  // is_pointwise(node): may be in a group at all. joins(node, root, n_nodes, n_operands): may be in
  // that of `root`, which would then have so many.
  template <class G, class IsPointwise, class Joins>
  static Groups find(const G& graph, IsPointwise&& is_pointwise, Joins&& joins) {
    Groups made;
    size_t n = graph.nodes.size();
    std::vector<size_t> operands(n);
    made.members_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      made.root_of_.push_back(static_cast<int>(i));
      made.members_[i] = {static_cast<int>(i)};
      operands[i] = graph.nodes[i].inputs.size();
    }
    for (size_t i = n; i-- > 0;) {
      const auto& node = graph.nodes[i];
      int index = static_cast<int>(i);
      if (node.outputs.empty() || node.outputs[0] == kNone || !is_pointwise(index)) continue;
      const auto& result = graph.value(node.outputs[0]);
      if (result.n_outputs > 0 || result.users.empty()) continue;
      int root = made.root_of(result.users[0]);
      auto at = static_cast<size_t>(root);
      bool is_inside =
          is_pointwise(root) && graph.value(graph.node(root).output(0)).dims == result.dims;
      for (int user : result.users)
        is_inside = is_inside && made.root_of(user) == root;
      size_t together = operands[at] + node.inputs.size();
      if (!is_inside || !joins(index, root, made.members_[at].size() + 1, together)) continue;
      made.root_of_[i] = root;
      made.members_[i].clear();
      made.members_[at].push_back(index);
      operands[at] = together;
    }
    for (std::vector<int>& list : made.members_)
      std::reverse(list.begin(), list.end());
    return made;
  }

  // The last node of its group; itself when alone.
  int root_of(int node) const { return root_of_[static_cast<size_t>(node)]; }
  // Of the group that ends with the node, in topological order; empty when it ends none.
  const std::vector<int>& members(int root) const { return members_[static_cast<size_t>(root)]; }

 private:
  std::vector<int> root_of_;
  std::vector<std::vector<int>> members_;  // by root
};

// A group as one program. Nothing is rounded between its nodes.
struct GroupProgram {
  std::vector<int> inputs;  // values, in the order of the program's inputs
  std::vector<tn_expr_node> expr;
};
template <class G>
GroupProgram join_programs(const G& graph, const std::vector<int>& members) {
  GroupProgram made;
  ProgramBuilder builder;
  std::map<int, uint32_t> at;  // by value
  uint32_t result = 0;
  for (int member : members) {
    const auto& node = graph.node(member);
    result = builder.append(node.expr, [&](uint32_t input) {
      int value = node.inputs[input];
      auto [found, is_new] = at.try_emplace(value, 0);
      if (!is_new) return found->second;
      made.inputs.push_back(value);
      return found->second = builder.input(static_cast<uint32_t>(made.inputs.size()) - 1);
    });
    at[node.outputs[0]] = result;
  }
  made.expr = builder.finish(result);
  return made;
}

}  // namespace tenon::backend
