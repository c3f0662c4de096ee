// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tn_graph in the form that claiming and compiling read: the kit's, with operands that broadcast
// otherwise than their values say.

#include "tenon/sdk/backend/graph.hpp"
#include "tenon/sdk/backend/program.hpp"

namespace tenon::cuda {

using backend::Dims;
using ValueInfo = backend::Value;
using backend::kNone;

struct NodeInfo : backend::Node {
  std::vector<Dims> shapes;  // of operands as they broadcast; empty: as their values have them
  bool is_exchanged[2] = {false,
                          false};  // a product's operands: with their last two axes exchanged
};

struct Imported : backend::BasicGraph<ValueInfo, NodeInfo> {
  const Dims& operand_dims(const NodeInfo& node, size_t i) const {
    return i < node.shapes.size() ? node.shapes[i] : value(node.inputs[i]).dims;
  }
  // Finds producers and users from the nodes.
  void link();
  // The numbers of a constant of integers; empty for anything else.
  Dims integers(int value) const;
};

Result<Imported> import_graph(const tn_graph* source);
// As an index of dimensions.
inline size_t axis_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(tenon::positive_axis(axis, rank));
}

}  // namespace tenon::cuda
