// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.hpp"

namespace tenon::host {

// Whether the graphs compute the same of inputs of the same types, whatever their nodes and values
// are called. Large constants are the same where they are one tensor.
bool are_alike(const tn_graph& a, const tn_graph& b);

}  // namespace tenon::host
