// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pointwise nodes and casts that the f32 kernel would round, integers and double, and logic, which
// takes a quarter of the memory as bytes.

#include "handlers.hpp"

namespace tenon::onednn {

std::string refuse_exact(const Graph& graph, const Node& node);
void lower_exact(Lowering& lowering, int node);
// Why a node that the f32 kernel computes is not computed here: empty where all it reads and makes
// are Booleans, and nothing of the f32 kernel could be one pass with it.
std::string refuse_logic(const Lowering& lowering, int node);

}  // namespace tenon::onednn
