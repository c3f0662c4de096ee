// SPDX-License-Identifier: Apache-2.0
#pragma once
// An operator that reads the shape of its input alone, which is known, keeps nothing alive and does
// not count as a reader.

#include "graph/graph.hpp"

namespace tenon::onednn {

void drop_shape_reads(Graph& graph);

}  // namespace tenon::onednn
