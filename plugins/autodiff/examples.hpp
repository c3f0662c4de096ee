// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a graph treats the examples of a batch alone, so that what reaches entry i of an axis
// came from example i and from no other. Examples are the entries of the first axis of inputs: of
// those whose size is one symbol, or, where sizes are known, of all that are no parameters and no
// states and have it, or of those that are named.

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/coupling.hpp"

namespace tenon::autodiff {

// The axis of an operand as a row's axes have it: which label, and which axis of its run. The first
// ones of a node's operands, inputs before outputs.
struct Axis {
  uint32_t label, index;
  bool operator==(const Axis&) const = default;
};
using FirstAxes = std::vector<std::optional<Axis>>;

using Cotangents = std::unordered_map<tn_value_id, Value>;  // by what they are of; falsy: zero

class Examples {
 public:
  // Of the values that `result` depends on; its first axis names the symbol.
  static Examples behind(Graph graph, Value result);
  // Of what a loss depends on, a scalar, up to where examples are joined: what is made of all of
  // them may weigh a single one (the share of labels that count) if no parameter decides it.
  // `names`: the inputs that have examples; empty: all that are as long as the first one.
  static Examples behind_loss(Graph graph,
                              Value loss,
                              const std::vector<Value>& parameters,
                              const std::vector<std::string>& names);

  const std::string& symbol() const { return symbol_; }
  // Why examples may be mixed: a node, and what is not known of it. Empty: they are not.
  const std::string& why_mixed() const { return why_; }
  // Depends on data of examples, one entry of the first axis each.
  bool has_examples(Value value) const { return values_.count(value.id) > 0; }
  bool reads(Node node) const;  // such a value
  // Whether entries of this input, which has no examples, go to one example each.
  bool is_each(Node node, uint64_t input) const;
  bool is_behind(Node node) const { return nodes_.count(node.id) > 0; }
  // The first axis is that of examples: of that size; a symbol is the size of no other.
  bool leads(const Type& type) const;
  int64_t size() const { return size_; }          // TN_DIM_UNKNOWN: a symbol
  Value count(Builder& b) const;                  // [1], int64
  Value zeros(Builder& b, uint32_t dtype) const;  // [examples]

 private:
  void follow(const std::vector<Node>& nodes, const std::unordered_set<tn_value_id>& active);
  bool joins(Node node, const std::unordered_set<tn_value_id>& active);
  std::string why_mixed(Node node) const;
  std::optional<Axis> axis_of(Node node, const FirstAxes& first) const;
  bool is_product(const Stated& stated) const;
  bool is_alone(Node node, const tn_op* row) const;

  std::string symbol_, why_;
  int64_t size_ = TN_DIM_UNKNOWN;
  Value first_;                                      // an input with examples
  std::unordered_set<tn_value_id> values_, joined_;  // joined: of examples and parameters
  std::unordered_set<tn_node_id> nodes_;             // that the result depends on
};

}  // namespace tenon::autodiff
