// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is made of booleans and of small tensors alone, as a loss makes it of its one-hot labels,
// runs anew in front of each pointwise node and each reduction that reads it, and becomes a part of
// its pass: what waits in memory is a byte an element.
//
// Before: hit = Cast(labels), a = ReduceSum(Mul(x, hit)), g = Mul(hit, s), b = Sub(g, ReduceSum(g))
// After:  a Cast for each Mul, and a Mul for each of the two nodes that read g

#include "graph/graph.hpp"

namespace tenon::onednn {

void delay_casts(Graph& graph);

}  // namespace tenon::onednn
