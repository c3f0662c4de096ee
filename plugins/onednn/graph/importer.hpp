// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tn_graph as the backend's own Graph. Values of types or shapes that the backend does not know
// are imported with `is_known` false, so that claiming can say why and go on.

#include <unordered_map>
#include <vector>

#include "tenon/sdk/graph.hpp"

#include "graph.hpp"

namespace tenon::onednn {

struct Imported {
  Graph graph;
  std::vector<tn_node_id> node_ids;  // by node index
  std::vector<bool> is_known;        // by value index
  std::vector<uint32_t> dtypes;      // by value index, as the ABI has them
  std::vector<Tensor> constants;     // keep the data that graph.values point to
  std::vector<std::string> unbound;  // by node index: why its expression cannot be had, or empty
};

Result<Imported> import_graph(const tn_graph* source);
// kCount when the backend has no such type.
ElementType element_of(uint32_t dtype);

}  // namespace tenon::onednn
