// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nodes behind a size that only a run knows: the number of boxes that a detector keeps, or the
// length of a cache that grows. Backends compile for known sizes and refuse such nodes. They become
// partitions of their own, late partitions, each with a plan that compiles for the sizes that a run
// brings.

#include <vector>

#include "backends/assignment.hpp"
#include "sizes/lateness.hpp"

namespace tenon::host {

// In place of a backend's index in an assignment.
inline constexpr int kLateBackend = -3;   // a late partition has it
inline constexpr int kRepeated = -4;      // late partitions alone have it, each for itself
inline constexpr int kLightBackend = -5;  // the last resort, which compiles once for any sizes

// kHeavy: nodes that only a backend of last resort takes, where they have much to compute; little
// is faster there than a compiler is. kAll: all but what has little to compute and reads nothing of
// the others, such as a decoder's positions and masks.
enum class LateSizes { kNone, kHeavy, kAll };

void assign_late(Assignment& all, const BackendUses& backends, LateSizes which);

// The nodes that compute numbers from shapes alone for these nodes and are not among them. A late
// partition repeats them: its compiler knows the shapes and must know these numbers.
std::vector<tn_node_id> numbers_for(const tn_graph& graph,
                                    const Lateness& lateness,
                                    const std::vector<tn_node_id>& nodes);

// The nodes of a late partition, and those that it repeats, as a graph of its own.
Result<Ref<tn_graph>> cut_late(const tn_graph& graph,
                               std::vector<tn_node_id> nodes,
                               const std::vector<tn_node_id>& repeated,
                               LateSizes which);

}  // namespace tenon::host
