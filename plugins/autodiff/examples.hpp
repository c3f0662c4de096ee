// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a graph treats the examples of a batch alone, so that what reaches entry i of an axis
// came from example i and from no other. Examples are the entries of the first axis of inputs whose
// size is one symbol.

#include <string>
#include <unordered_set>

#include "tenon/sdk/graph.hpp"

namespace tenon::autodiff {

class Examples {
 public:
  // Of the values that `result` depends on; its first axis names the symbol.
  static Examples behind(Graph graph, Value result);

  const std::string& symbol() const { return symbol_; }
  // Why examples may be mixed: a node, and what is not known of it. Empty: they are not.
  const std::string& why_mixed() const { return why_; }
  // Depends on data of examples, one entry of the first axis each.
  bool has_examples(Value value) const { return values_.count(value.id) > 0; }
  // The symbol is the size of the first axis, and of no other.
  bool leads(const Type& type) const;

 private:
  std::string why_mixed(Node node) const;
  // By what the row says of its axes: the first ones of all that have examples are one.
  bool by_axes(Node node, const tn_op* row) const;
  bool is_product(Node node, const tn_op_columns& columns) const;
  bool is_alone(Node node, const tn_op* row) const;

  std::string symbol_, why_;
  std::unordered_set<tn_value_id> values_;
};

}  // namespace tenon::autodiff
