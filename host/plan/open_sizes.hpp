// SPDX-License-Identifier: Apache-2.0
#pragma once
// Specializations for any value of some sizes. A decoder whose cache grows brings another size with
// each run, and most of its nodes do not see it. When a plan meets the third shape that differs
// from the others in the same sizes, it leaves these open: what does not depend on them is compiled
// for good, and what does goes to late partitions (../sizes/late_nodes.hpp), which compile a few
// nodes for each new size. Layers that are alike share them.

#include <optional>
#include <vector>

#include "plan/partition.hpp"
#include "plan/plan.hpp"

namespace tenon::host {

struct OpenSizes {
  Shapes shapes;        // kOpenSize where they change
  CompiledRef seen[2];  // specializations for two values of each of these sizes
};

// For inputs of shapes that no specialization serves. Takes the plan's lock.
std::optional<OpenSizes> open_sizes_for(tn_plan* plan, Inputs in);
// Whether late partitions have at most half of the nodes, those that are alike counted once.
bool pays_open(const std::vector<CompiledPartition>& partitions);

}  // namespace tenon::host
