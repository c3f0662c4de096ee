// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes are pointwise here, how a group of them becomes text, and what products absorb.

#include "codegen/pointwise_text.hpp"
#include "lowering.hpp"

namespace tenon::cuda {

constexpr int kGroupNodes = 64;

bool is_pointwise(const Imported& graph, const NodeInfo& node);
std::string refuse_pointwise(const Imported& graph, const NodeInfo& node);

struct BuiltGroup {
  PointwiseText text;
  std::vector<int> inputs;  // values
  uint64_t vectors = 0;     // threads that have work
};
// `members` in topological order; the last one's result is the group's.
BuiltGroup build_group(const Imported& graph, const std::vector<int>& members);

// Bias and activation behind a product or convolution. False: there is none.
bool find_tail(const Imported& graph, int node, Lowering::Tail* tail, std::vector<int>* absorbed);

}  // namespace tenon::cuda
