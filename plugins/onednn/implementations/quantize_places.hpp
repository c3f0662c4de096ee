// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "graph/graph.hpp"
#include "kernels/quantize_args.h"

namespace tenon::onednn {

// Where the scales of a QuantizeLinear or DequantizeLinear lie, as the kernels have it; nothing
// when the shapes do not fit each other.
std::optional<kernels::QuantizeArgs> find_places(const Graph& graph, const Node& node);

}  // namespace tenon::onednn
