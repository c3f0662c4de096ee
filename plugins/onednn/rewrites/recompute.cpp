// SPDX-License-Identifier: Apache-2.0
#include "recompute.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tenon::onednn {
namespace {

constexpr int64_t kLeastBytes = int64_t{256} << 10;  // less is not worth a node
constexpr int kNear = 24;                            // nodes
constexpr int kMostRounds = 16;

struct Repeat {
  int node;
  int reader;  // the first that reads the new result
};

class Recomputing {
 public:
  explicit Recomputing(Graph& graph) : graph_(graph) {}

  // Whether anything was found.
  bool round() {
    int peak = fullest_node();
    std::vector<Repeat> repeats;
    std::vector<bool> is_repeated(graph_.values.size(), false);
    for (int i = 0; i < peak; ++i) {
      const Node& node = graph_.nodes[i];
      bool reads_repeated = std::any_of(node.inputs.begin(), node.inputs.end(), [&](int input) {
        return input != kNone && is_repeated[input];
      });
      int reader = reads_repeated ? kNone : reader_behind(i, peak);
      if (reader == kNone) continue;
      repeats.push_back({i, reader});
      is_repeated[node.outputs[0]] = true;
    }
    if (!repeats.empty()) insert(repeats, peak);
    return !repeats.empty();
  }

 private:
  int fullest_node() const {
    std::vector<int64_t> change(graph_.nodes.size() + 1, 0);
    for (const Value& value : graph_.values) {
      if (value.producer == kNone || value.users.empty() || is_passing(value)) continue;
      change[value.producer] += value.bytes();
      change[value.users.back() + 1] -= value.bytes();
    }
    int64_t alive = 0;
    int64_t most = -1;
    int fullest = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      alive += change[i];
      if (alive > most) fullest = static_cast<int>(i);
      most = std::max(most, alive);
    }
    return fullest;
  }

  // Pointwise nodes near each other run as one: what is between them is never in memory.
  bool is_passing(const Value& value) const {
    return value.n_outputs == 0 && is_elementwise(graph_.nodes[value.producer]) &&
           std::all_of(value.users.begin(), value.users.end(), [&](int user) {
             return user - value.producer < kNear && is_elementwise(graph_.nodes[user]);
           });
  }

  // Integers are computed in a pass of their own, which no gradient shares.
  bool reads_integers(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](int input) {
      if (input == kNone) return false;
      const ElementType type = graph_.values[input].type;
      return !is_real_type(type) && type != ElementType::kBool;
    });
  }

  bool makes_one(const Node& node) const {
    return node.outputs[0] != kNone &&
           std::all_of(node.outputs.begin() + 1, node.outputs.end(), [&](int output) {
             return output == kNone ||
                    (graph_.values[output].users.empty() && graph_.values[output].n_outputs == 0);
           });
  }

  // Where the result of a cheap node is read next after the peak; kNone when it has to stay.
  int reader_behind(int index, int peak) const {
    const Node& node = graph_.nodes[index];
    if (!node.is_cheap || reads_integers(node) || !makes_one(node)) return kNone;
    const Value& result = graph_.values[node.outputs[0]];
    if (result.n_outputs > 0 || result.bytes() < kLeastBytes) return kNone;
    auto reader = std::lower_bound(result.users.begin(), result.users.end(), peak);
    bool waits = reader != result.users.end() && *reader > peak && reader != result.users.begin();
    if (!waits) return kNone;
    for (int input : node.inputs) {
      if (input != kNone && !stays(input, *reader, result.bytes())) return kNone;
    }
    return *reader;
  }

  // Whether the value is there at `reader` anyway, or takes little, as the bytes of a Cast.
  bool stays(int input, int reader, int64_t saved) const {
    const Value& value = graph_.values[input];
    if (value.producer == kNone) return true;
    return value.bytes() * 4 <= saved || (!value.users.empty() && value.users.back() >= reader);
  }

  void insert(const std::vector<Repeat>& repeats, int peak) {
    std::vector<std::vector<Node>> in_front(graph_.nodes.size());
    for (const Repeat& repeat : repeats) {
      Node again = graph_.nodes[repeat.node];
      int kept = again.outputs[0];
      Value made;
      made.name = graph_.values[kept].name + "/again";
      made.type = graph_.values[kept].type;
      made.dims = graph_.values[kept].dims;
      again.name += "/again";
      std::fill(again.outputs.begin(), again.outputs.end(), kNone);
      again.outputs[0] = graph_.add_value(std::move(made));
      for (int user : graph_.values[kept].users) {
        std::vector<int>& inputs = graph_.nodes[user].inputs;
        if (user > peak) std::replace(inputs.begin(), inputs.end(), kept, again.outputs[0]);
      }
      in_front[repeat.reader].push_back(std::move(again));
    }
    std::vector<Node> ordered;
    for (size_t i = 0; i < in_front.size(); ++i) {
      std::move(in_front[i].begin(), in_front[i].end(), std::back_inserter(ordered));
      ordered.push_back(std::move(graph_.nodes[i]));
    }
    graph_.reorder(std::move(ordered));
  }

  Graph& graph_;
};

}  // namespace

void recompute(Graph& graph) {
  Recomputing recomputing(graph);
  for (int i = 0; i < kMostRounds && recomputing.round(); ++i) {
  }
}

}  // namespace tenon::onednn
