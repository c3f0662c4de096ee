// SPDX-License-Identifier: Apache-2.0
#pragma once
// A Cast of booleans that several pointwise nodes read, as a loss does of its one-hot labels, runs
// anew in front of each of them and becomes a part of its pass: what waits in memory is a byte an
// element.

#include "graph/graph.hpp"

namespace tenon::onednn {

void delay_casts(Graph& graph);

}  // namespace tenon::onednn
