// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cheapest recomputation whose planned peak is within a budget.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "recomputation.hpp"

namespace tenon::autodiff {

struct Chosen {
  std::vector<int> ends;         // of segments, as choose_cuts gives them
  std::set<ForwardResult> kept;  // inside of segments
  double cost = 0;               // of what is computed again, in ns
  int64_t peak = 0;              // of memory, behind it
};

// What each forward node takes, in ns: what was measured of it by name, else estimated from its
// row: 25 operations or 8 bytes in a ns, whichever takes longer. Only ratios matter.
std::vector<double> node_costs(const Joint& joint, const std::map<std::string, double>& times);

// budget: bytes of the peak by these sizes. Cuts of several sizes are tried; for each of them the
// price of a ns in bytes (keep_choice.hpp) is the highest whose choice is within the budget, and a
// knapsack of segments fills what it leaves. OUT_OF_RANGE names the least budget where there is
// none.
Result<Chosen> choose_within(const tn_graph* graph,
                             int64_t budget,
                             Sizes sizes,
                             const std::map<std::string, double>& times);

}  // namespace tenon::autodiff
