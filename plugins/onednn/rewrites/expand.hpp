// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators that are a few simpler ones here: rewritten before lowering, so that the parts fuse
// with what is around them. Claiming sees the graph as it was.
//
// | before | after |
// |---|---|
// | MatMul with a vector | MatMul of matrices between Reshapes |
// | Gemm with alpha, beta or a C that is no row | product, then one pointwise node |
// | tenon:ConvInputGrad | ConvTranspose: the same sums |
// | tenon:SumTo | ReduceSum over the axes that broadcast, Reshape |

#include "graph/graph.hpp"

namespace tenon::onednn {

void expand(Graph& graph);

}  // namespace tenon::onednn
