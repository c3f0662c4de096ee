// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the backward pass of a joint graph reads of its forward pass, and whether gradients are
// linear in it. Where they are, a saved value may be replaced by a random one of the same mean.

#include <vector>

#include "joint.hpp"

namespace tenon::autodiff {

enum class ReadKind {
  kLinear,     // gradients are an affine function of it, with all else as it is
  kNonlinear,  // or not known
  kStep,       // a comparison, an index: gradients jump
};

// An input of a node that is not of the forward pass.
struct SavedRead {
  Node node;
  uint64_t input = 0;
  Value value;  // of the forward pass
  Value base;   // what it is a view of
  ReadKind kind = ReadKind::kNonlinear;
};

// Reads of values that forward nodes make, of float type and known sizes; constants, inputs and
// outputs of the graph are not among them: they are in memory anyway.
Result<std::vector<SavedRead>> saved_reads(const tn_graph* graph, const Joint& joint);

}  // namespace tenon::autodiff
