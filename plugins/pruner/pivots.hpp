// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which factor of a folded axis channels run along. A product of [width, 3 * heads * size] is split
// into [3, heads, size] and 3 is selected from: there heads are the channels, not thirds. No
// operator says so; it shows when the outermost factor has to stay, and then the next is tried.

#include <set>

#include "couplings.hpp"

namespace tenon::pruner {

class Groups;

class PivotSearch {
 public:
  const Pivots& pivots() const { return pivots_; }
  // Chooses other factors where those of these groups give no channels; false: nothing is left to
  // try. First where something else than another fold is why, as other folds may follow from that.
  // A fold none of whose factors gives channels goes back to the outermost for good.
  bool advance(const Groups& groups);

 private:
  bool advance(const Fold& fold);

  Pivots pivots_;
  std::set<std::pair<tn_node_id, size_t>> exhausted_;
};

}  // namespace tenon::pruner
