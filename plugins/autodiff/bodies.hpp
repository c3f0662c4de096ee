// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bodies of control-flow nodes, and new ones made of them.

#include "tenon/sdk/role/op.hpp"

namespace tenon::autodiff {

Graph body_of(Node node, std::string_view attribute);  // raw is NULL: there is none

// Copies the nodes of a body in, on these inputs; what stands for its outputs comes back. inside:
// values of the body that become their copies.
Result<std::vector<Value>> copy_into(EditView edit,
                                     Graph body,
                                     const std::vector<Value>& inputs,
                                     std::vector<Value>* inside = nullptr);

// A graph in the making; it is a body when finish has succeeded.
struct Body {
  OwnedGraph graph;
  Edit edit;

  static Result<Body> begin(tn_ctx* ctx);
  Result<Value> input(const Type& type) const;
  // A constant of the outer graph stays one; anything else is an input, and `captured` names it.
  Result<Value> capture(Value outer, std::vector<Value>& captured) const;
  Result<std::vector<Value>> copy(Graph body,
                                  const std::vector<Value>& inputs,
                                  std::vector<Value>* inside = nullptr) const;
  // An output; an input or a constant that is handed straight on gets a node of its own.
  Status output(Value value) const;
  Status finish();
};

// The kinds of inputs that control-flow nodes and their bodies share, by position.
struct Interface {
  size_t n_first = 0, n_states = 0, n_scanned = 0, n_captures = 0;  // of the node's inputs
  size_t n_results = 0;  // of the body's outputs, before the states (Loop's condition)
  size_t scanned() const { return n_first + n_states; }
  size_t captures() const { return scanned() + n_scanned; }
};
Result<Interface> scan_interface(Node node, Graph body);
Result<Interface> loop_interface(Node node, Graph body);

// An input of a Scan without the axis that it is walked along.
Type slice_type(Type type, int64_t axis);
int64_t entry(const std::vector<int64_t>& list, size_t i);  // 0 beyond the end

}  // namespace tenon::autodiff
