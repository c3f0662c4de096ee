// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a Reduce node computes: the axes it runs over, and the kernel's name for it.

#include <optional>

#include "graph.hpp"
#include "kernels/reduce.h"

namespace tenon::onednn {

// Ascending, counted from the front. Where axes are an input, it must be constant.
Dims reduced_axes(const Graph& graph, const Node& node);

// Nothing where the kernel has no such reduction.
std::optional<kernels::Reduction> kernel_reduction(const Node& node);

// How many of the last axes a sum, mean, maximum or minimum runs over, where these are all of its
// axes; else 0.
size_t reduced_last_axes(const Graph& graph, const Node& node);

}  // namespace tenon::onednn
