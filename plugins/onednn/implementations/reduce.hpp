// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a Reduce node does, for groups that run it together with what is around it.

#include <optional>

#include "graph/graph.hpp"
#include "kernels/reduce.h"
#include "lowering/plan.hpp"

namespace tenon::onednn {

// Ascending, counted from the front. Where axes are an input, it must be constant.
Dims reduced_axes(const Graph& graph, const Node& node);

// Nothing where the kernel has no such reduction.
std::optional<kernels::Reduction> kernel_reduction(const Node& node);

// Of a step whose places are the source and the target.
KernelFunction reduce_function(const kernels::ReduceArgs& args);

}  // namespace tenon::onednn
