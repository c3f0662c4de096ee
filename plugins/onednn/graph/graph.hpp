// SPDX-License-Identifier: Apache-2.0
#pragma once
// The backend's own picture of a graph: nodes with ONNX names over values with static shapes. It is
// made by the importer from a tn_graph, or by hand in tests, and is read only while it is compiled.
// Constants are borrowed: whoever made the graph keeps their memory alive.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/expr.h"

#include "kernels/types.h"

namespace tenon::onednn {

using kernels::ElementType;
using Dims = std::vector<int64_t>;

int64_t element_count(const Dims& dims);
const char* element_name(ElementType type);

using AttributeValue =
    std::variant<int64_t, double, std::string, Dims, std::vector<double>, std::vector<std::string>>;
struct Attribute {
  std::string name;
  AttributeValue value;
};

constexpr int kNone = -1;  // an absent optional input, or no producer

struct Value {
  std::string name;
  ElementType type = ElementType::kF32;
  Dims dims;
  const void* data = nullptr;  // constants: dense, row-major
  int producer = kNone;
  std::vector<int> users;  // node indices, one entry per use
  int n_outputs = 0;       // how often it is an output of the graph, or a state's new value

  int64_t count() const { return element_count(dims); }
  int64_t bytes() const { return count() * kernels::element_bytes(type); }
};

struct Node {
  std::string op;
  std::string name;
  std::vector<int> inputs = {};  // value indices; kNone where absent
  std::vector<int> outputs = {};
  std::vector<Attribute> attributes = {};
  std::vector<tn_expr_node> expr = {};     // pointwise operators: their scalar program; else empty
  uint32_t domain = TN_EXPR_DOMAIN_FLOAT;  // of expr
  uint32_t bits = 0;                       // to which integers of expr wrap
  bool is_cheap = false;                   // by its row: better computed again than kept

  int input(size_t i) const { return i < inputs.size() ? inputs[i] : kNone; }
  int64_t integer(std::string_view name, int64_t fallback) const;
  double real(std::string_view name, double fallback) const;
  std::string text(std::string_view name, const char* fallback) const;
  Dims integers(std::string_view name, const Dims& fallback = {}) const;
  const AttributeValue* find(std::string_view name) const;
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;  // in topological order
  std::vector<int> inputs;
  std::vector<int> outputs;
  // Values kept from run to run: before and after. They are neither inputs nor outputs.
  std::vector<std::pair<int, int>> states;

  int add_value(Value value);
  int add_input(std::string name, ElementType type, Dims dims);
  int add_constant(std::string name, ElementType type, Dims dims, const void* data);
  // The node's outputs get their producer; users are filled by finish().
  int add_node(Node node);
  // The nodes in another order, with producers and users of values renewed.
  void reorder(std::vector<Node> ordered);
  void add_output(int value);
  void finish();

  // The node that alone reads the value, once; kNone when others do or the graph gives it away.
  int only_user(int value) const;
};

}  // namespace tenon::onednn
