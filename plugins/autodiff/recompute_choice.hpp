// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a forward pass is cut so that what lies between two cuts is computed again: no graph here.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::autodiff {

// A result of the forward pass by the places of nodes in its order.
struct ForwardValue {
  int made = 0;
  int last_use = 0;  // by the forward pass; `made` where there is none
  int64_t bytes = 0;
  bool is_saved = false;  // whether the backward pass reads it
};

struct Cuts {
  std::vector<int> ends;  // the last node of each segment but the last one
  int64_t kept = 0;       // bytes of what crosses cuts
  int64_t largest = 0;    // bytes that the backward pass reads of one segment, the largest
  int64_t bytes() const { return kept + largest; }
};

// The cuts for which kept + largest is least: as sqrt(n) of n equal layers does (Chen, Xu, Zhang
// and Guestrin 2016, "Training deep nets with sublinear memory cost", algorithm 3), but cut where
// little crosses. No cuts where they save nothing.
Cuts choose_cuts(const std::vector<ForwardValue>& values, int n_nodes);

// The `count` best of all that were tried, by kept + largest, the best first; none twice.
std::vector<std::vector<int>> best_cuts(const std::vector<ForwardValue>& values,
                                        int n_nodes,
                                        size_t count);

// Other cuts by segments of at most so many bytes, from few segments to many.
std::vector<std::vector<int>> candidate_cuts(const std::vector<ForwardValue>& values, int n_nodes);

}  // namespace tenon::autodiff
