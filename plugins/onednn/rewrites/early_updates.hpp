// SPDX-License-Identifier: Apache-2.0
#pragma once
// A rewrite of training graphs: a large parameter is updated as soon as its gradient is there and
// nothing reads the parameter any more. Updates stand behind the whole backward pass in a step,
// where the gradients of all parameters are in memory at once; so they are there one after the
// other, while the activations of earlier layers still are (Lv et al., "Full Parameter Fine-tuning
// for Large Language Models with Limited Resources", 2023, section 3, with the optimizer's slots).
//
// A run changes all states or none, so no update runs in front of a node that data may make fail,
// as one that looks indices up; from the first update on a run is not cancelled. Updates that
// depend on all gradients, as behind a clipping by their norm, stay where they are.

#include "graph/graph.hpp"

namespace tenon::onednn {

void update_early(Graph& graph);

}  // namespace tenon::onednn
