// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which results of a forward pass are kept for the backward pass, and which are computed again: no
// graph here.

#include <cstdint>
#include <vector>

namespace tenon::autodiff {

struct KeepNode {
  double cost = 0;                   // of computing it again
  bool is_fixed = false;             // it may not run twice
  bool is_view = false;              // it takes no memory of its own, and is never what is kept
  std::vector<int> inputs, outputs;  // values, by their numbers
};
struct KeepValue {
  int64_t bytes = 0;
  bool is_read = false;  // by the backward pass
};
struct KeepProblem {
  std::vector<KeepNode> nodes;
  std::vector<KeepValue> values;  // each the output of one node
};
struct KeepChoice {
  std::vector<bool> values;  // of each: whether it is kept
  int64_t bytes = 0;         // of those
  double cost = 0;           // of the nodes that are computed again
};

// The choice for which bytes + price * cost is least, where every value that is read is kept or
// computed again, from values of which the same holds. A minimum cut, as PyTorch's partitioner of
// joint graphs makes one (functorch, min_cut_rematerialization_partition), but a node that is
// computed again costs its price: there it costs nothing, and heuristics forbid what is dear.
KeepChoice choose_kept(const KeepProblem& problem, double price);

// Items of which those are taken that are worth most together and fit: 0/1 knapsack, sizes rounded
// up to capacity / 4096.
std::vector<bool> fill_knapsack(const std::vector<int64_t>& sizes,
                                const std::vector<double>& worth,
                                int64_t capacity);

}  // namespace tenon::autodiff
