// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dependency groups of a graph: channels that pass through the same axes, each of which can be
// removed from all of them. And the layers whose channels must stay, with the reason.

#include <set>
#include <string>
#include <vector>

#include "couplings.hpp"

namespace tenon::pruner {

struct Member {  // an axis of a constant
  Value value;
  size_t axis = 0;
  Kind kind = Kind::kNone;
  Node node;  // that reads it
  uint64_t outer = 1, extent = 1, inner = 1;
  std::vector<int64_t> channel;  // [extent], -1: of no channel of this group
};

struct Group {
  std::string layer;           // the first node that makes the channels
  std::vector<Node> makers;    // all of them
  std::vector<int64_t> roots;  // the channels, as classes of the couplings, in order
  int64_t width = 1;           // entries per channel in the first maker's weight
  std::vector<Member> members;
  std::vector<Member> activations;  // what members of kind kReads multiply; sizes by each batch
  size_t n_channels() const { return roots.size(); }
};

struct Barrier {  // channels of a layer that must stay
  Node node;
  Value weight;
  size_t axis = 0;
  int64_t channels = 0;
  std::string why;
};

// A weight matrix or kernel: a constant that makes channels on one axis from those on another.
struct Weight {
  Value value;
  Node node;
  size_t makes = 0, reads = 0;  // axes
  Value multiplies = {};        // what the node multiplies it with; falsy: not known
  size_t features = 0;          // the axis of that, which `reads` runs along
};

class Groups {
 public:
  // graph: outlives this and is not edited meanwhile.
  static Groups of(Graph graph);

  const std::vector<Group>& all() const { return groups_; }
  const std::vector<Barrier>& barriers() const { return barriers_; }
  // Nodes that some channel passes through: what they cost can shrink.
  std::set<tn_node_id> prunable(Graph graph) const;
  const std::vector<Weight>& weights() const { return weights_; }
  const Couplings& couplings() const { return couplings_; }

 private:
  static Groups with(Graph graph, const Pivots& pivots);
  void collect();
  void collect_members();
  void collect_activations(Group& group);
  void collect_weights();

  Couplings couplings_;
  std::vector<Group> groups_;
  std::vector<Barrier> barriers_;
  std::vector<Weight> weights_;
};

}  // namespace tenon::pruner
