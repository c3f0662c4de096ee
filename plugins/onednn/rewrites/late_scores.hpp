// SPDX-License-Identifier: Apache-2.0
#pragma once
// A rewrite of the order of nodes: attention's scores and their Softmax run right before the
// product that alone reads them, so that its other operand, the values, is there by then and all
// three can run batch by batch (implementations/attention.cpp).

#include "graph/graph.hpp"

namespace tenon::onednn {

void delay_scores(Graph& graph);

}  // namespace tenon::onednn
