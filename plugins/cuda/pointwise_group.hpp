// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes are pointwise here, how a group of them becomes text, and what products absorb.

#include "codegen/pointwise_text.hpp"
#include "lowering.hpp"

namespace tenon::cuda {

constexpr size_t kGroupNodes = 64;

bool is_pointwise(const Imported& graph, const NodeInfo& node);
std::string refuse_pointwise(const Imported& graph, const NodeInfo& node);

// How many inputs a kernel over these axes takes: each has an address, and a stride for each axis.
size_t most_inputs(const Dims& dims);

struct GatheredGroup {
  PointwiseGroup group;
  std::vector<int> inputs;  // values
};
// `members` in topological order; the last one's result is the group's.
GatheredGroup gather_group(const Imported& graph, const std::vector<int>& members);
// The same group over axes with channels last, which all its operands then are.
void put_channels_last(PointwiseGroup* group);

// Bias, residual and activation behind a product or convolution. False: there is none.
bool find_epilogue(const Imported& graph,
                   int node,
                   bool takes_residuals,
                   Lowering::Epilogue* epilogue,
                   std::vector<int>* absorbed);

}  // namespace tenon::cuda
