// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which node of the original a node of a smaller model was, and which of its channels are left.

#include <nlohmann/json.hpp>

#include "tenon/sdk/original.hpp"

#include "layer.hpp"

namespace tenon::recovery {

class Twins {
 public:
  static Result<Twins> of(Graph model);
  Graph original() const { return original_; }

  struct Twin {
    Node last;                      // that adds to the sums of the layer, as Layer::last
    std::vector<int64_t> channels;  // of its output, for each of the layer's
  };
  // An error says why the layer has none.
  Result<Twin> of(const Layer& layer) const;

 private:
  Node named(Node like) const;
  Graph original_;
  nlohmann::json kept_;
};

}  // namespace tenon::recovery
