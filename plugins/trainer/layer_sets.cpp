// SPDX-License-Identifier: Apache-2.0
#include "layer_sets.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::trainer {

// In units of 1/most, where everything is whole: draw j of `most` leaves out layer i where a number
// of the form j + k * most is in [c_(i-1), c_i).
LayerSets::LayerSets(const std::vector<double>& wanted, size_t most) : sets_{{}} {
  std::vector<int64_t> sums{0};
  double sum = 0;
  const auto units = static_cast<int64_t>(most);
  for (double share : wanted) {
    sum += share;
    int64_t rounded = std::llround(sum * static_cast<double>(most));
    // One that is always left out would never learn.
    sums.push_back(std::min(rounded, sums.back() + units - 1));
    shares_.push_back(static_cast<double>(sums.back() - sums[sums.size() - 2]) /
                      static_cast<double>(most));
  }
  for (int64_t j = 0; j < units; ++j) {
    std::vector<size_t> without;
    for (size_t i = 0; i < wanted.size(); ++i) {
      // How many numbers of that form are below c.
      auto below = [&](int64_t c) { return (c - j + units - 1) / units; };
      if (below(sums[i + 1]) > below(sums[i])) without.push_back(i);
    }
    auto same = [&](const Set& set) { return set.without == without; };
    auto found = std::find_if(sets_.begin(), sets_.end(), same);
    if (found == sets_.end()) found = sets_.insert(found, Set{without, 0});
    found->chance += 1.0 / static_cast<double>(most);
  }
}

size_t LayerSets::draw(const std::vector<Set>& sets, double u, double all) {
  if (u < all || all >= 1) return 0;
  double left = (u - all) / (1 - all);
  size_t at = 0;
  while (at + 1 < sets.size() && left >= sets[at].chance)
    left -= sets[at++].chance;
  return at;
}

}  // namespace tenon::trainer
