// SPDX-License-Identifier: Apache-2.0
#pragma once
// A Loop whose examples stop at different times goes on until the last one does; an example that
// has stopped keeps its states. So it is written for one example with a state of its own that says
// whether it still goes on, and batched as any other Loop. Its scan outputs have as many entries as
// the longest example has steps, and one more of them says which are whose (ragged.hpp).

#include "bodies.hpp"

namespace tenon::autodiff {

// A Loop as its parts: inputs and body.
struct LoopForm {
  std::vector<Value> inputs;
  OwnedGraph body;
  Interface parts;
  bool has_mask;  // whether the body's last output says that this step is one of the example's
};

// The Loop `node` with the further state in front of the others, and, where it has a trip count,
// that of the example behind the states. The body's condition is the example's own. The first two
// inputs are left empty: how long the whole goes on depends on all examples.
Result<LoopForm> masked_loop(EditView edit, Node node, Graph body, const Interface& parts);

// Whether one is true, of any shape: a bool scalar.
Value any_of(Builder& b, Value x);
// Makes the body's condition, which is there for each example, true while one of them goes on.
Status join_conditions(const OwnedGraph& body);

}  // namespace tenon::autodiff
