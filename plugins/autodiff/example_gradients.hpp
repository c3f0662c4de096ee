// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of a parameter for each example, in the graph that has the cotangents: each node that
// reads it is differentiated on one example, and that is batched (vmap of its gradient). So what no
// rule says costs the gradients of these nodes only, not a model of its own.

#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/sdk/run.hpp"

#include "examples.hpp"

namespace tenon::autodiff {

// What stands for one example while gradients are made; remove_stand_ins, once dead nodes are gone.
inline constexpr std::string_view kStandIn = "example_stand_in/";
Status remove_stand_ins(const EditView& edit);

class ExampleGradients {
 public:
  ExampleGradients(EditView edit, const Examples& examples, const Cancel& cancel)
      : edit_(edit), examples_(&examples), cancel_(cancel) {}

  // Before there are cotangents: looks where the value is read. UNIMPLEMENTED, with the reason, if
  // what an example adds to its gradient cannot be kept apart from what others add.
  Status plan(Value value);
  // Results of nodes that read planned values and examples: what cotangents are needed of.
  std::vector<Value> results() const;

  // [examples, shape of the planned value]; falsy: the loss does not depend on it. `cotangents`: of
  // results(), by value.
  Result<Value> of(Value value, const Cotangents& cotangents);
  // The gradient in which each example's part counts as often as its weight says, [examples].
  Result<Value> weighted(Value value, Value weights, const Cotangents& cotangents);
  // Nodes that had no batch rule and run as a loop.
  const std::vector<std::string>& loops() const { return loops_; }

 private:
  Result<Value> through(Node node, Value value, const Cotangents& cotangents);

  EditView edit_;
  const Examples* examples_;
  Cancel cancel_;
  std::vector<std::string> loops_;
  std::unordered_map<tn_value_id, std::vector<Node>> readers_;  // of planned values
};

}  // namespace tenon::autodiff
