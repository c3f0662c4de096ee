// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tensors behind the constants of an imported graph while it is compiled: weights that have
// been packed go back to the system one by one, so that a model is not in memory twice.

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "graph/graph.hpp"
#include "plan.hpp"

namespace tenon::onednn {

class Constants {
 public:
  // Takes over the tensors of the graph, which keeps the addresses.
  explicit Constants(Graph& graph);
  // No node reads the constant at this address any more, and no step: its memory may go.
  void has_been_packed(const void* data);
  // Of the tensor that holds this address; 0: none does.
  uint64_t identity(const void* data) const;
  // Those that steps of the plan read where they are; lets go of the others.
  std::vector<Tensor> read_in_place(const Plan& plan);

 private:
  std::map<const void*, Tensor, std::less<>> by_data_;  // by the address of its first element
};

}  // namespace tenon::onednn
