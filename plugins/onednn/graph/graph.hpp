// SPDX-License-Identifier: Apache-2.0
#pragma once
// The backend's own picture of a graph: the kit's, over values with a type that kernels know. It is
// made by the importer from a tn_graph, or by hand in tests, and is read only while it is compiled.
// Constants are borrowed from whoever made the graph, but those that a rewrite has made (keeper).

#include <map>
#include <memory>
#include <optional>

#include "tenon/sdk/backend/graph.hpp"

#include "kernels/types.h"

namespace tenon::onednn {

using backend::Attribute;
using backend::AttributeValue;
using backend::Dims;
using backend::kNone;
using backend::Node;
using backend::row_major_strides;
using kernels::ElementType;
using kernels::is_real_type;
using tenon::element_count;

const char* element_name(ElementType type);

struct Value : backend::Value {
  ElementType type = ElementType::kF32;
  std::shared_ptr<const void> keeper;  // of a constant that a rewrite has made
  // f32 of which integers are made: it is not kept in bf16, nor made by an algorithm that rounds.
  bool is_exact = false;

  int64_t bytes() const { return kernels::bytes_for(type, count()); }
};

// Computes each element for itself: by an expression, or as a Cast.
inline bool is_elementwise(const Node& node) {
  return !node.expr.empty() || node.op == "Cast";
}

// A known constant of int8 that is 0 throughout, as most zero points of weights are.
bool holds_zeros(const Value& value);

// The number of a constant of one f32 element. In a program it is a number, not an operand: a known
// exponent needs no general power.
std::optional<double> constant_number(const Value& value);

struct Graph : backend::BasicGraph<Value, Node> {
  // What control-flow nodes repeat, by the id of the node in its tn_graph.
  std::map<tn_node_id, std::shared_ptr<const Graph>> bodies;

  // nullptr: the node has none.
  std::shared_ptr<const Graph> body_of(const Node& node) const {
    auto found = bodies.find(node.source.id);
    return found == bodies.end() ? nullptr : found->second;
  }
  int add_input(std::string name, ElementType type, Dims dims);
  int add_constant(std::string name, ElementType type, Dims dims, const void* data);
  // A value of f32 with the shape of another one, named after it.
  int add_f32_like(int like, const char* what);
  // The value becomes a constant of these numbers.
  void set_numbers(int value, std::shared_ptr<const std::vector<float>> numbers);
  // Not added: a rewrite says where it stands.
  Node cast_node(int from, int to) const;
};

}  // namespace tenon::onednn
