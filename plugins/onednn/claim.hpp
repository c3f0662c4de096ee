// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes this backend takes.

#include "graph/importer.hpp"

namespace tenon::onednn {

// Empty: node `index` is taken. Else why not, for the report.
std::string why_not(const Graph& graph, int index);
// The node, with what must be compiled beside it: a DequantizeLinear of constants that only it
// reads.
std::vector<int> claim_group(const Graph& graph, int index);

}  // namespace tenon::onednn
