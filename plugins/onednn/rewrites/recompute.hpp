// SPDX-License-Identifier: Apache-2.0
#pragma once
// A rewrite of training graphs: what a cheap node made in the forward pass is recomputed where
// the backward pass reads it, when it would else be kept over the moment that needs the most memory
// and all that it is made from is kept anyway (Chen et al., "Training deep nets with sublinear
// memory cost", 2016, section 3.2, where one drops the results of cheap operators). Which operators
// are cheap, their rows say (recompute): pointwise ones, norms. There a pointwise node shares a
// pass over memory with the gradient, which reads the same operands.

#include "graph/graph.hpp"

namespace tenon::onednn {

void recompute(Graph& graph);

}  // namespace tenon::onednn
