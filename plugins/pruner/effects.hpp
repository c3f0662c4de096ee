// SPDX-License-Identifier: Apache-2.0
#pragma once
// What taking channels out does to the loss. Each value that weights of a group read is multiplied
// by gates, 1 or 0 for each channel, which are inputs of one plan: a channel whose gate is 0 is as
// good as removed, and nothing is compiled anew.

#include <vector>

#include "groups.hpp"
#include "loss.hpp"

namespace tenon::pruner {

class Effects {
 public:
  // graph and the plan's data: outlive this.
  static Result<Effects> make(tn_ctx* ctx,
                              const tn_graph* graph,
                              const std::vector<const Group*>& groups,
                              const BatchPlan& plan);
  uint64_t batches() const { return feed_.batches(); }
  Status load(uint64_t batch);
  // [orders][channels] of the group of this number: by how much the loss of the batch that was
  // loaded rises when a channel goes after those before it in a random order.
  Result<std::vector<float>> of(size_t group, const Cancel& cancel);

 private:
  struct Gate {  // of one value along one axis
    Value value;
    size_t axis = 0;
    std::vector<std::pair<Node, uint64_t>> readers;  // and which of their inputs
    std::vector<int64_t> shape;
    std::vector<float> numbers;
  };
  struct Use {  // of a gate by a group
    size_t gate;
    std::vector<int64_t> channel;  // of the group, for each entry; -1: none
  };
  Status collect(const Group& group);
  Status insert(tn_graph* graph);
  void set(size_t group, int64_t channel, float to);
  Result<double> loss(const Cancel& cancel);

  Plan plan_;
  Feed feed_;
  BatchRules rules_;
  uint64_t orders_ = 1, seed_ = 0, batch_ = 0;
  std::vector<Gate> gates_;
  std::vector<std::vector<Use>> uses_;  // by group
  std::vector<size_t> channels_;        // likewise
  std::vector<DLTensor> inputs_;        // of the batch that was loaded, without gates
};

}  // namespace tenon::pruner
