// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the inputs of a graph say of each other's sizes by symbols: "past" of two caches is one
// number, and "past + 1" of a mask is another. Binding a graph checks that; a specialization with
// open sizes is not bound again and checks it here, for each run.

#include <span>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace tenon::host {

class SizeSymbols {
 public:
  explicit SizeSymbols(const tn_graph& graph);
  bool agree(std::span<const DLTensor* const> inputs) const;

 private:
  struct Size {
    size_t input, axis;
    int64_t of(std::span<const DLTensor* const> inputs) const { return inputs[input]->shape[axis]; }
  };
  struct Name {
    std::string text;
    Size first;
    std::vector<Size> others;
  };
  std::vector<Name> names_;
  std::vector<std::pair<std::string, Size>> expressions_;
};

}  // namespace tenon::host
