// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rules that every graph keeps: V1, V2, ... Each is one row of a table and one function; README
// lists them. A failure names the rule, and the node and value that break it.

#include "graph/graph.hpp"

namespace tenon::host {

struct OpRow;

// What a commit checks: all rules but V5 (types agree with inference), which the edit has just done
// for what changed. Linear in the size of the graph.
Status verify_tables(const tn_graph& graph);
// All rules.
Status verify(const tn_graph& graph);

// V3 for one node.
Status check_arity(const OpRow& row, const Node& node);

}  // namespace tenon::host
