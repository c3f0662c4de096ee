// SPDX-License-Identifier: Apache-2.0
#include "early_updates.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "graph/checked_indices.hpp"

namespace tenon::onednn {
namespace {

// Smaller parameters are updated together, in one step at the end.
constexpr int64_t kLeastCount = int64_t{1} << 20;

// Beside pointwise ones: no data makes their steps fail.
constexpr std::string_view kSafe[] = {"MatMul",
                                      "Gemm",
                                      "Conv",
                                      "ConvTranspose",
                                      "ReduceSum",
                                      "ReduceMean",
                                      "Transpose",
                                      "Reshape",
                                      "Squeeze",
                                      "Unsqueeze",
                                      "Expand",
                                      "Identity",
                                      "Slice",
                                      "Split",
                                      "Concat",
                                      "Pad",
                                      "Softmax",
                                      "LogSoftmax",
                                      "LayerNormalization",
                                      "BatchNormalization",
                                      "MaxPool",
                                      "tenon.ConvInputGrad",
                                      "tenon.ConvWeightGrad",
                                      "tenon.BatchNormGrad",
                                      "tenon.LayerNormGrad",
                                      "tenon.MaxPoolGrad"};
// What reads their result reads their operand.
constexpr std::string_view kViews[] = {"Transpose", "Reshape",  "Squeeze", "Unsqueeze",
                                       "Expand",    "Identity", "Slice",   "Split"};

bool may_fail(const Graph& graph, const Node& node) {
  if (has_checked_indices(graph, node)) return false;
  const bool is_pointwise = !node.expr.empty();
  const bool only_moves = std::ranges::count(kViews, node.op) > 0;  // elements of any type
  if (!is_pointwise && std::ranges::count(kSafe, node.op) == 0) return true;
  // Integers are computed elsewhere; sizes and axes are known.
  auto is_safe = [&](int value) {
    if (value == kNone || graph.value(value).data != nullptr) return true;
    const ElementType type = graph.value(value).type;
    return is_real_type(type) || (is_pointwise && type == ElementType::kBool);
  };
  const auto sizes = node.inputs.begin() + (only_moves ? 1 : 0);
  return !std::all_of(sizes, node.inputs.end(), is_safe) ||
         !(only_moves || std::ranges::all_of(node.outputs, is_safe));
}

class Updates {
 public:
  explicit Updates(Graph& graph)
      : graph_(graph), group_of_(graph.nodes.size(), kNone), is_placed_(graph.nodes.size(), false) {
    find_updating_nodes();
    find_groups();
  }

  void run() {
    if (groups_.empty()) return;
    for (int i = 0; i < n_nodes(); ++i)
      if (group_of_[i] == kNone && !is_placed_[i]) place(i);
    for (int i = 0; i < static_cast<int>(groups_.size()); ++i)
      if (!is_placed_[groups_[i].nodes[0]]) place_group(i);  // that awaits a node of its own
    std::vector<Node> ordered;
    for (int index : order_)
      ordered.push_back(std::move(graph_.nodes[index]));
    graph_.reorder(std::move(ordered));
  }

 private:
  struct Group {  // the nodes that update one parameter and its slots
    std::vector<int> nodes;
    size_t n_awaited = 0;  // nodes that have to be placed before
  };

  int n_nodes() const { return static_cast<int>(graph_.nodes.size()); }
  bool is_large(int value) const {
    return value != kNone && graph_.value(value).count() >= kLeastCount;
  }

  // Pointwise nodes that nothing but new states comes from.
  void find_updating_nodes() {
    std::map<int, int> states;  // how many states a value is the new value of
    for (const auto& [before, after] : graph_.states)
      ++states[after];
    updates_.assign(graph_.nodes.size(), false);
    auto ends_in_states = [&](int output) {
      if (output == kNone) return true;
      const Value& value = graph_.value(output);
      auto found = states.find(output);
      return value.n_outputs == (found == states.end() ? 0 : found->second) &&
             std::ranges::all_of(value.users, [&](int user) { return updates_[user]; });
    };
    for (int i = n_nodes(); i-- > 0;)
      updates_[i] = !graph_.node(i).expr.empty() &&
                    std::ranges::all_of(graph_.node(i).outputs, ends_in_states);
  }

  // Nodes with a large value in common; a gradient from outside is none of theirs.
  void find_groups() {
    std::map<int, int> owner;  // of large values: a node
    std::vector<int> parent(graph_.nodes.size());
    std::iota(parent.begin(), parent.end(), 0);
    auto root = [&](int node) {
      while (parent[node] != node)
        node = parent[node] = parent[parent[node]];
      return node;
    };
    auto join = [&](int value, int node) {
      if (!is_large(value)) return;
      auto [found, is_new] = owner.try_emplace(value, node);
      if (!is_new) parent[root(node)] = root(found->second);
    };
    std::vector<bool> is_member(graph_.nodes.size(), false);
    for (int i = 0; i < n_nodes(); ++i) {
      if (!updates_[i]) continue;
      is_member[i] =
          std::ranges::any_of(graph_.node(i).outputs, [&](int v) { return is_large(v); });
      if (!is_member[i]) continue;
      for (int value : graph_.node(i).inputs)
        join(value, i);
      for (int value : graph_.node(i).outputs)
        join(value, i);
    }
    std::map<int, int> index;  // of a group, by its root
    for (int i = 0; i < n_nodes(); ++i) {
      if (!is_member[i]) continue;
      auto [found, is_new] = index.try_emplace(root(i), static_cast<int>(groups_.size()));
      if (is_new) groups_.emplace_back();
      groups_[found->second].nodes.push_back(i);
      group_of_[i] = found->second;
    }
    awaited_by_.resize(graph_.nodes.size());
    std::set<int> failing;
    for (int i = 0; i < n_nodes() && !groups_.empty(); ++i)
      if (may_fail(graph_, graph_.node(i))) failing.insert(i);
    for (int i = 0; i < static_cast<int>(groups_.size()); ++i)
      await(i, failing);
  }

  void await(int index, std::set<int> awaited) {
    for (int node : groups_[index].nodes)
      for (int input : graph_.node(node).inputs)
        add_makers(input, index, awaited);
    for (const auto& [before, after] : graph_.states) {
      const int producer = graph_.value(after).producer;
      if (producer != kNone && group_of_[producer] == index) add_readers(before, index, awaited);
    }
    groups_[index].n_awaited = awaited.size();
    for (int node : awaited)
      awaited_by_[node].push_back(index);
  }

  // Small updating nodes are placed when they are needed, so it is theirs that count.
  void add_makers(int value, int group, std::set<int>& awaited) const {
    if (value == kNone) return;
    const int producer = graph_.value(value).producer;
    if (producer == kNone || group_of_[producer] == group) return;
    if (!updates_[producer]) {
      awaited.insert(producer);
      return;
    }
    for (int input : graph_.node(producer).inputs)
      add_makers(input, group, awaited);
  }

  void add_readers(int value, int group, std::set<int>& awaited) const {
    for (int user : graph_.value(value).users) {
      if (group_of_[user] == group) continue;
      awaited.insert(user);
      if (std::ranges::count(kViews, graph_.node(user).op) == 0) continue;
      for (int output : graph_.node(user).outputs)
        if (output != kNone) add_readers(output, group, awaited);
    }
  }

  void place(int first) {
    order_.push_back(first);
    is_placed_[first] = true;
    for (int group : awaited_by_[first])
      if (--groups_[group].n_awaited == 0) place_group(group);
  }

  void place_group(int index) {
    for (int node : groups_[index].nodes) {
      for (int input : graph_.node(node).inputs)
        place_makers(input);
      place(node);
    }
  }

  void place_makers(int value) {
    const int producer = value == kNone ? kNone : graph_.value(value).producer;
    if (producer == kNone || is_placed_[producer] || group_of_[producer] != kNone) return;
    for (int input : graph_.node(producer).inputs)
      place_makers(input);
    place(producer);
  }

  Graph& graph_;
  std::vector<bool> updates_;
  std::vector<Group> groups_;
  std::vector<int> group_of_;
  std::vector<std::vector<int>> awaited_by_;  // groups, by node
  std::vector<bool> is_placed_;
  std::vector<int> order_;
};

}  // namespace

void update_early(Graph& graph) {
  Updates(graph).run();
}

}  // namespace tenon::onednn
