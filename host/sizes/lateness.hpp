// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the nodes of a graph do with sizes that are not known yet.

#include <unordered_set>

#include "graph/graph.hpp"

namespace tenon::host {

bool has_open_sizes(const Type& type);

class Lateness {
 public:
  explicit Lateness(const tn_graph& graph);  // which outlives it
  // Reads a value of open sizes, or numbers that the sizes of its results depend on.
  bool is_late(tn_node_id id) const { return late_.contains(id); }
  // Computes small tensors of numbers from shapes alone.
  bool is_number(tn_node_id id) const { return numbers_.contains(id); }

 private:
  bool is_number_value(tn_value_id id) const;
  bool makes_numbers(const Node& node, uint32_t traits, bool reads_open, bool reads_number) const;

  const Tables& t_;
  std::unordered_set<tn_node_id> late_, numbers_;
};

}  // namespace tenon::host
