// SPDX-License-Identifier: Apache-2.0
#pragma once
// An If whose condition differs by example: both branches, and a choice for every element.

#include "batching.hpp"

namespace tenon::autodiff {

// branches: then and else. Gives back what is to be batched in the node's place.
Result<std::vector<Node>> batch_choice(BatchContext& context, Node node, const Graph* branches);

}  // namespace tenon::autodiff
