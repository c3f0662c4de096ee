// SPDX-License-Identifier: Apache-2.0
#pragma once
// A joint graph whose backward pass reads copies: what of the forward pass is computed again, in
// which segments, and the edit that does it.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tenon/sdk/build.hpp"

#include "joint.hpp"
#include "keep_choice.hpp"
#include "recompute_choice.hpp"

namespace tenon::autodiff {

// A result by the place of its node in the forward pass, which copies of a graph share.
struct ForwardResult {
  int place;
  uint64_t output;
  auto operator<=>(const ForwardResult&) const = default;
};

class Recomputation {
 public:
  Recomputation(const EditView& edit, Joint joint, Sizes sizes);

  // What choose_cuts and candidate_cuts want to know.
  std::vector<ForwardValue> forward_values() const;
  int n_forward() const { return static_cast<int>(segment_.size()); }
  const Joint& joint() const { return joint_; }

  // Behind the last of these places is what the backward pass begins with: it is kept.
  void cut(const std::vector<int>& ends);
  Status by_regions(const std::vector<std::string>& regions);
  // Results inside of segments that are kept all the same.
  void keep(const std::set<ForwardResult>& results);

  // A segment as choose_kept sees it; results: what the numbers of its values stand for. cost: of
  // each forward node.
  struct Inside {
    KeepProblem problem;
    std::vector<ForwardResult> results;
  };
  std::vector<Inside> insides(const std::vector<double>& cost) const;

  Status rewrite();
  size_t n_segments() const { return turns_.size(); }
  size_t n_again() const { return nodes_.size(); }

 private:
  struct Reader {
    Node node;
    uint64_t input;
    Value value;
    int segment;
  };

  std::string known_scopes() const;
  int segment_of(Node node) const;
  int inside(Value value) const;
  bool is_kept(Value value) const;
  void find_readers();
  Value again(Value value, int segment);
  Value entering(Value value, int segment);

  const EditView& edit_;
  Builder builder_;
  Joint joint_;
  Sizes sizes_;
  std::vector<int> segment_;  // of each forward node; -1: its results are kept
  std::set<ForwardResult> kept_;
  std::vector<Reader> readers_;
  std::map<int, std::vector<Value>> turns_;
  std::set<tn_node_id> nodes_;
  std::map<tn_value_id, Value> made_;
  std::map<std::pair<tn_value_id, int>, Value> held_;
};

// A copy of the joint graph behind what `use` does to its recomputation.
Result<OwnedGraph> on_copy(const tn_graph* graph,
                           Sizes sizes,
                           const std::function<Status(Recomputation&)>& use);

// Nodes that may not run twice: their results are kept.
bool is_fixed(Node node);

}  // namespace tenon::autodiff
