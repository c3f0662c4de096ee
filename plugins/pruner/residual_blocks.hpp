// SPDX-License-Identifier: Apache-2.0
#pragma once
// Residual blocks: what a sum adds to a value that goes around it. Without the block the value
// goes on as it is.

#include <string>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::pruner {

struct Block {
  Node join;                 // y = around + branch
  Value around, result;      // of one type
  std::vector<Node> branch;  // nodes that only `join` needs, in order
  int64_t parameters = 0;    // numbers of the weights that only they read
};

// All blocks whose branch holds a layer that computes, in order.
std::vector<Block> blocks_of(Graph graph);

// Lets `around` go on in the place of `result`, and takes the branch out.
Status drop(EditView edit, const Block& block);

}  // namespace tenon::pruner
