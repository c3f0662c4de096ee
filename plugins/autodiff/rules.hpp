// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ladder of gradient rules of one node: its function's own gradient graph, the row's vjp, the
// row's expr, and that it is a view. What is composite has been taken apart before.

#include "tenon/sdk/role/op.hpp"

namespace tenon::autodiff {

// A function of the graph that a node calls.
struct Called {
  const tn_graph* body = nullptr;
  const tn_graph* vjp = nullptr;
  explicit operator bool() const { return body != nullptr; }
};
Called function_of(Node node);

// Whether the node has to be taken apart to be differentiated.
bool is_composite(Node node);
// Whether nothing of what it reads reaches its outputs as numbers.
bool stops_gradients(Node node);
// Whether a gradient can pass this output: floating point, and quantized values of it.
bool carries_gradient(Node node, Value output);

Status differentiate(const EditView& edit,
                     Node node,
                     const std::vector<Value>& cotangents,
                     const std::vector<uint8_t>& wanted,
                     std::vector<tn_value_id>& gradients);

}  // namespace tenon::autodiff
