// SPDX-License-Identifier: Apache-2.0
#include "graph.hpp"

#include <utility>

namespace tenon::onednn {

int64_t element_count(const Dims& dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return count;
}

const char* element_name(ElementType type) {
  static constexpr const char* kNames[] = {"f32", "bf16", "f16", "u8",  "s8",  "i32", "i64", "bool",
                                           "f64", "u16",  "i16", "u32", "u64", "u4",  "i4"};
  return type < ElementType::kCount ? kNames[static_cast<int>(type)] : "?";
}

const AttributeValue* Node::find(std::string_view attribute) const {
  for (const Attribute& a : attributes) {
    if (a.name == attribute) return &a.value;
  }
  return nullptr;
}

int64_t Node::integer(std::string_view attribute, int64_t fallback) const {
  const AttributeValue* value = find(attribute);
  if (value == nullptr) return fallback;
  if (const int64_t* i = std::get_if<int64_t>(value)) return *i;
  return fallback;
}

double Node::real(std::string_view attribute, double fallback) const {
  const AttributeValue* value = find(attribute);
  if (value == nullptr) return fallback;
  if (const double* f = std::get_if<double>(value)) return *f;
  if (const int64_t* i = std::get_if<int64_t>(value)) return static_cast<double>(*i);
  return fallback;
}

std::string Node::text(std::string_view attribute, const char* fallback) const {
  const AttributeValue* value = find(attribute);
  if (value == nullptr) return fallback;
  if (const std::string* s = std::get_if<std::string>(value)) return *s;
  return fallback;
}

Dims Node::integers(std::string_view attribute, const Dims& fallback) const {
  const AttributeValue* value = find(attribute);
  if (value == nullptr) return fallback;
  // An empty list is what rows take for one that is left out.
  const Dims* list = std::get_if<Dims>(value);
  return list == nullptr || list->empty() ? fallback : *list;
}

int Graph::add_value(Value value) {
  values.push_back(std::move(value));
  return static_cast<int>(values.size()) - 1;
}

int Graph::add_input(std::string name, ElementType type, Dims dims) {
  Value value;
  value.name = std::move(name);
  value.type = type;
  value.dims = std::move(dims);
  inputs.push_back(add_value(std::move(value)));
  return inputs.back();
}

int Graph::add_constant(std::string name, ElementType type, Dims dims, const void* data) {
  Value value;
  value.name = std::move(name);
  value.type = type;
  value.dims = std::move(dims);
  value.data = data;
  return add_value(std::move(value));
}

int Graph::add_node(Node node) {
  int index = static_cast<int>(nodes.size());
  for (int output : node.outputs) {
    if (output != kNone) values[output].producer = index;
  }
  nodes.push_back(std::move(node));
  return index;
}

void Graph::reorder(std::vector<Node> ordered) {
  nodes.clear();
  for (Node& node : ordered)
    add_node(std::move(node));
  finish();
}

void Graph::add_output(int value) {
  outputs.push_back(value);
}

int Graph::only_user(int value) const {
  const Value& read = values[value];
  return read.n_outputs == 0 && read.users.size() == 1 ? read.users[0] : kNone;
}

void Graph::finish() {
  for (Value& value : values) {
    value.users.clear();
    value.n_outputs = 0;
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (int input : nodes[i].inputs) {
      if (input != kNone) values[input].users.push_back(static_cast<int>(i));
    }
  }
  for (int output : outputs)
    ++values[output].n_outputs;
  for (const auto& [before, after] : states)
    ++values[after].n_outputs;
}

}  // namespace tenon::onednn
