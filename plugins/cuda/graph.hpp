// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tn_graph in the form that claiming and compiling read: indices in place of ids, static shapes,
// bound expressions. Nodes keep their handle, so attributes are read from the graph itself.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/sdk/graph.hpp"

#include "scalar_program.hpp"

namespace tenon::cuda {

using Dims = std::vector<int64_t>;
constexpr int kAbsent = -1;  // an absent optional input, or no producer

struct ValueInfo {
  std::string name;
  uint32_t dtype = TN_DTYPE_NONE;
  Dims dims;
  bool is_known = false;  // type and shape are static
  bool is_output = false;
  Tensor constant;
  int producer = kAbsent;
  std::vector<int> users;  // one entry per use

  int64_t count() const { return element_count(dims); }
  uint64_t bytes() const { return bytes_of(dtype, count()); }
};

struct NodeInfo {
  tenon::Node source;
  std::string op;  // "MatMul", or "domain.Type"
  std::string name;
  std::vector<int> in, out;
  const tn_expr_program* program = nullptr;
  std::shared_ptr<const OwnProgram> own;  // where the program is one of this backend
  std::vector<Dims> shapes;  // of operands as they broadcast; empty: as their values have them
  std::string unbound;       // why there is no program although the row has an expression

  int input(size_t i) const { return i < in.size() ? in[i] : kAbsent; }
  int output(size_t i) const { return i < out.size() ? out[i] : kAbsent; }
};

struct StateInfo {
  std::string name;  // of the input
  int before = kAbsent, after = kAbsent;
};

struct Imported {
  std::vector<ValueInfo> values;
  std::vector<NodeInfo> nodes;  // in topological order
  std::vector<int> inputs, outputs;
  std::vector<StateInfo> states;

  const ValueInfo& value(int i) const { return values[static_cast<size_t>(i)]; }
  const Dims& operand_dims(const NodeInfo& node, size_t i) const {
    return i < node.shapes.size() ? node.shapes[i] : value(node.in[i]).dims;
  }
  // Finds producers and users from the nodes.
  void link();
  // The numbers of a constant of integers; empty for anything else.
  Dims integers(int value) const;
};

Imported import_graph(const tn_graph* source);
// A negative axis counts from the end.
inline size_t axis_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}
Dims row_major(const Dims& dims);

}  // namespace tenon::cuda
