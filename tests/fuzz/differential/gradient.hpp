// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graphs of gradients: a random graph with a loss behind its outputs, as a training step has it.

#include <vector>

#include "growth.hpp"

namespace tenon::fuzz {

// The rows of a recipe that a gradient passes through: those of which one of a few samples can be
// differentiated.
std::vector<const tn_op*> differentiable_rows(const Recipe& recipe);

// The loss, with some luck the outputs of the graph, and the gradient by each of its
// floating-point inputs; perhaps for a batch, along a direction or with recomputation. A failure: a
// node is not differentiable, or nothing floats.
Result<OwnedGraph> gradient_of(tn_ctx* ctx, const tn_graph* graph, Random& random);

}  // namespace tenon::fuzz
