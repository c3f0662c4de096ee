// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nodes behind a size that only a run knows, such as the number of boxes that a detector keeps.
// Backends refuse them, as they compile for known sizes. Where they have much to compute, they
// become a plan of their own, which compiles for the sizes that a run brings; little is faster on
// the last resort than a compiler is.

#include "plan/partition.hpp"

namespace tenon::host {

// Splits partitions of backends of last resort in front of such nodes, which are fallbacks no more.
void split_late_sizes(const tn_graph& graph,
                      const BackendUses& backends,
                      std::vector<Partition>* partitions,
                      std::vector<Fallback>* fallbacks);

}  // namespace tenon::host
