// SPDX-License-Identifier: Apache-2.0
#pragma once
// A joint graph: forward and backward in one, as a pass that makes gradients leaves it. What the
// outputs other than `grad/...` need is its forward pass, what depends on a seed of the gradient
// its backward pass; the rest are values of the forward pass that the backward pass alone reads.

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/sdk/notes.hpp"
#include "tenon/sdk/role/op.hpp"

namespace tenon::autodiff {

class Joint {
 public:
  static Result<Joint> of(const Graph& graph);

  const std::vector<Node>& forward() const { return forward_; }  // in order
  const std::vector<Node>& others() const { return others_; }    // in order
  // Where a forward node stands among them; -1: it is none.
  int place(Node node) const;
  bool is_backward(Value value) const { return backward_.count(value.id) > 0; }
  // An input that a gradient is taken by.
  bool is_parameter(Value value) const { return parameters_.count(value.id) > 0; }

 private:
  std::vector<Node> forward_, others_;
  std::unordered_map<tn_node_id, int> places_;
  std::unordered_set<tn_value_id> backward_, parameters_;
};

// What a value is a view of; itself where it is none.
Value base_of(Value value);
// What results take in memory: as their types say, or as a plan of precision=bf16 keeps them, which
// stores floats in two bytes where there are many.
struct Sizes {
  bool is_bf16 = false;

  // Sizes of axes that are not known count as 1.
  int64_t of(Value value) const;
  // The most bytes of results that are alive at once when nodes run in the graph's order.
  int64_t peak(const Graph& graph) const;
};
inline int64_t bytes_of(Value value) {
  return Sizes{}.of(value);
}

}  // namespace tenon::autodiff
