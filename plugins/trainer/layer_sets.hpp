// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which layers steps leave out together: a few sets, so that each can have a plan of its own, drawn
// so that each layer is left out as often as it should be.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::trainer {

// Systematic sampling (Madow 1949, Ann. Math. Stat. 20): with c_i the sum of the shares of layers
// up to i, a draw u from [0, 1) leaves out those between whose c_(i-1) and c_i there is a u + k, k
// whole. Each is left out with its share, how many go differs by one at most, they lie apart, and
// there are no more sets than layers. Sums are multiples of 1/most, so that there are no more than
// that either; shares are what these give.
class LayerSets {
 public:
  struct Set {
    std::vector<size_t> without;  // in order
    double chance = 0;
  };

  LayerSets() = default;
  // wanted: the share of draws that leaves out layer i, below 1. most: at least 1.
  LayerSets(const std::vector<double>& wanted, size_t most);

  // How often each layer is left out.
  const std::vector<double>& shares() const { return shares_; }
  // The first one leaves nothing out, and has no chance but that of `draw`.
  const std::vector<Set>& sets() const { return sets_; }
  // u from [0, 1); all: how often no layer is left out, whatever the chances: then each layer is
  // left out with 1 - all times its share.
  static size_t draw(const std::vector<Set>& sets, double u, double all);

 private:
  std::vector<double> shares_;
  std::vector<Set> sets_;
};

}  // namespace tenon::trainer
