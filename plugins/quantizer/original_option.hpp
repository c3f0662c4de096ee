// SPDX-License-Identifier: Apache-2.0
#pragma once
// The float model that a quantized one was made of: what passes that repair the quantized one are
// given as option `original`.

#include "tenon/sdk/graph.hpp"

namespace tenon::quantizer {

inline Result<OwnedGraph> original_option(const Options& options) {
  tn_any given = options.get("original");
  if (given.tag != TN_ANY_GRAPH)
    return invalid("option original: expected the float model that the quantized one was made of");
  auto* raw = static_cast<tn_graph*>(const_cast<void*>(given.v.p));
  services.graph->retain(raw);
  return Result<OwnedGraph>(OwnedGraph::take(raw));
}

}  // namespace tenon::quantizer
