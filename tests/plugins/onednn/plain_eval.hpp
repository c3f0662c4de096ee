// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a small graph node by node in double with plain loops: what the backend is compared with.

#include <vector>

#include "graph/graph.hpp"

namespace tenon::onednn::test {

// All values by index, row-major; inputs given in the graph's order.
std::vector<std::vector<double>> plain_eval(const Graph& graph,
                                            const std::vector<std::vector<double>>& inputs);

}  // namespace tenon::onednn::test
