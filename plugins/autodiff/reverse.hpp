// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reverse accumulation over a graph: gradients as nodes of the same graph.

#include <unordered_set>

#include "tenon/sdk/role/op.hpp"

namespace tenon::autodiff {

struct Request {
  std::vector<uint64_t> outputs;  // which outputs of the graph
  std::vector<Value> cotangents;  // one for each of them; falsy: zero
  std::vector<Value> wrt;         // any values
};

// One gradient for each of wrt, of its type; falsy: zero. Composite nodes on the way that have no
// rule of their own are replaced by their parts first.
Result<std::vector<Value>> reverse(const EditView& edit, const Request& request);

// Values of float type that depend on wrt, along nodes in order.
using Active = std::unordered_set<tn_value_id>;
Active depending(const std::vector<Node>& nodes, const std::vector<Value>& wrt);

// Adds up the elements that came from one element of `like` by broadcasting.
Value sum_to(Builder& b, Value value, Value like);

// As an operator and where it stands, for messages.
std::string described(Node node);

}  // namespace tenon::autodiff
