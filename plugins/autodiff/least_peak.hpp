// SPDX-License-Identifier: Apache-2.0
#pragma once
// The segments of a recomputation whose planned peak is the least that is found.

#include <vector>

#include "recomputation.hpp"

namespace tenon::autodiff {

// The ends of segments, as choose_cuts gives them; none if by those estimates nothing is saved.
// choose_cuts estimates what segments take by the values that cross and those inside. The peak of
// the rewritten graph also has the gradients of a segment, what only recomputation needs and how
// long each value is alive, so the best estimates are rewritten and the best of those is improved:
// each cut is moved to its neighbours, left out, or joined by another one.
Result<std::vector<int>> least_peak_cuts(const tn_graph* graph, Sizes sizes);

}  // namespace tenon::autodiff
