// SPDX-License-Identifier: Apache-2.0
#pragma once
// Resize by any of ONNX's rules, one axis at a time: each result coordinate is a weighted sum of a
// few source coordinates, and the weights are a table per axis.

#include "handlers.hpp"

namespace tenon::onednn {

// Whether the scale of each axis is known to be the quotient of its sizes, as oneDNN has it.
bool is_by_whole_sizes(const Graph& graph, const Node& node);
std::string refuse_resample(const Graph& graph, const Node& node);
void lower_resample(Lowering& lowering, int node);
// What takes the nearest numbers in row-major order moves them as they are stored: of any type.
std::string refuse_nearest(const Lowering& lowering, const Node& node);
void lower_nearest(Lowering& lowering, int node);

}  // namespace tenon::onednn
