// SPDX-License-Identifier: Apache-2.0
#pragma once
// Slice whose numbers are not constants or whose steps are negative, Pad in all modes, Tile.

#include "handlers.hpp"

namespace tenon::onednn {

std::string refuse_slice_any(const Graph& graph, const Node& node);
void lower_slice_any(Lowering& lowering, int node);
std::string refuse_pad_any(const Graph& graph, const Node& node);
void lower_pad_any(Lowering& lowering, int node);

}  // namespace tenon::onednn
