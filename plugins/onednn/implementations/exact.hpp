// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pointwise nodes and casts that the f32 kernel would round: integers and double.

#include "handlers.hpp"

namespace tenon::onednn {

std::string refuse_exact(const Graph& graph, const Node& node);
void lower_exact(Lowering& lowering, int node);

}  // namespace tenon::onednn
