// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions of any element type over any axes, also when the axes are known only at run time: in
// f64, integers in 64 bits. The fast cases are in reduce.cpp.

#include "handlers.hpp"

namespace tenon::onednn {

std::string refuse_reduce_any(const Graph& graph, const Node& node);
void lower_reduce_any(Lowering& lowering, int node);

}  // namespace tenon::onednn
