// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a product or a convolution can compute along with its result: the chain of nodes behind it
// that each read only what came before, with another operand perhaps (bias, activation, residual
// sum).

#include "tenon/sdk/backend/graph.hpp"

namespace tenon::backend {

struct EpilogueOp {
  enum class Kind {
    kBias,    // Add of one number for each channel
    kBinary,  // a node of two operands; `other` broadcasts to the result
    kUnary,   // all else that reads nothing but the result and constants
  };
  Kind kind = Kind::kUnary;
  int node = kNone;
  int other = kNone;     // of kBias and kBinary: a value
  bool is_first = true;  // the result so far is the node's first operand
};

struct Epilogue {
  std::vector<EpilogueOp> ops;
  int result = kNone;  // the value after the last of them
};

// Whether the value has one number for each index of `axis` of `dims`, and lies along it.
inline bool is_along(const Dims& value, const Dims& dims, size_t axis) {
  if (value.size() > dims.size() || element_count(value) != dims[axis]) return false;
  size_t shift = dims.size() - value.size();
  return axis >= shift && value[axis - shift] == dims[axis];
}

// What the node is to the result so far, `value`; false where it is no such node.
template <class G>
bool match_epilogue(const G& graph, int index, int value, size_t channel_axis, EpilogueOp* out) {
  const auto& node = graph.node(index);
  const auto& result = graph.value(value);
  if (node.outputs.size() != 1 || graph.value(node.outputs[0]).dims != result.dims) return false;
  *out = {EpilogueOp::Kind::kUnary, index};
  size_t n_varying = 0;
  for (int input : node.inputs)
    n_varying += input != kNone && graph.value(input).data == nullptr;
  if (node.inputs.size() == 2 && node.inputs[0] != kNone && node.inputs[1] != kNone) {
    out->is_first = node.inputs[0] == value;
    out->other = node.inputs[out->is_first ? 1 : 0];
    const Dims& other = graph.value(out->other).dims;
    if (out->other == value || !broadcasts_to(other, result.dims)) return false;
    bool is_bias = node.op == "Add" && is_along(other, result.dims, channel_axis);
    out->kind = is_bias ? EpilogueOp::Kind::kBias : EpilogueOp::Kind::kBinary;
    return true;
  }
  return n_varying == 1 && node.inputs[0] == value;
}

// The chain behind output 0 of the node. takes(op, so_far) says whether the backend computes the
// next node along; it may remember what it was shown.
template <class G, class Takes>
Epilogue find_epilogue(const G& graph, int node, size_t channel_axis, Takes&& takes) {
  Epilogue made;
  made.result = graph.node(node).outputs[0];
  for (EpilogueOp op;;) {
    int user = graph.only_user(made.result);
    if (user == kNone || !match_epilogue(graph, user, made.result, channel_axis, &op)) return made;
    if (!takes(op, made)) return made;
    made.ops.push_back(op);
    made.result = graph.node(user).outputs[0];
  }
}

}  // namespace tenon::backend
