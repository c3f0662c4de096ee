// SPDX-License-Identifier: Apache-2.0
#pragma once
// Changing a graph in C++. EditView is a borrowed transaction (shape, decompose and sample columns
// get one); Edit owns one and rolls back unless it is committed.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/graph.hpp"

namespace tenon {

struct Attr {
  std::string_view name;
  tn_any value;
  Attr(std::string_view key, const tn_any& any) : name(key), value(any) {}
  Attr(std::string_view key, int64_t number) : name(key), value(any_int(number)) {}
  Attr(std::string_view key, int number) : name(key), value(any_int(number)) {}
  Attr(std::string_view key, double number) : name(key), value(any_float(number)) {}
  Attr(std::string_view key, const char* text) : name(key), value(any_text(text)) {}
  Attr(std::string_view key, std::string_view text) : name(key), value(any_text(text)) {}
  // Borrows the vector, as every other pointer in a tn_any.
  Attr(std::string_view key, const std::vector<int64_t>& ints) : name(key), value(any_ints(ints)) {}
};

struct NodeSpec {
  std::string_view type;
  std::vector<Value> inputs = {};
  std::vector<Attr> attrs = {};
  uint64_t n_outputs = 1;
  std::string_view name = {};
  std::string_view domain = {};
  std::string_view scope = {};
  std::vector<std::string_view> output_names = {};  // empty, or one per output
};

struct EditView {
  tn_edit* raw = nullptr;

  Graph graph() const { return {services.edit->graph(raw)}; }
  tn_ctx* ctx() const { return services.edit->context(raw); }
  Node node(tn_node_id id) const { return {graph().raw, id}; }
  Value value(tn_value_id id) const { return {graph().raw, id}; }

  Result<Node> add(const NodeSpec& spec) const;
  // A node with one output, as its output: edit.op("Add", {a, b}).
  Result<Value> op(std::string_view type,
                   std::vector<Value> inputs,
                   std::vector<Attr> attrs = {}) const {
    TN_TRY(node, add({.type = type, .inputs = std::move(inputs), .attrs = std::move(attrs)}));
    return node.output(0);
  }
  Result<Value> constant(const Tensor& tensor, std::string_view name = {}) const {
    tn_value_id id = 0;
    TN_CHECK(services.edit->add_constant(raw, str(name), tensor.get(), &id));
    return value(id);
  }
  template <class T>
  Result<Value> constant(uint32_t dtype,
                         const std::vector<int64_t>& shape,
                         const std::vector<T>& values,
                         std::string_view name = {}) const {
    TN_TRY(tensor, Tensor::of<T>(ctx(), dtype, shape, values));
    return constant(tensor, name);
  }
  Result<Value> ints(const std::vector<int64_t>& values, std::string_view name = {}) const {
    return constant<int64_t>(TN_I64, {static_cast<int64_t>(values.size())}, values, name);
  }
  Result<Value> input(std::string_view name, const Type& type) const {
    tn_value_id id = 0;
    TN_CHECK(services.edit->add_input(raw, str(name), TypeView(type).get(), &id));
    return value(id);
  }
  Status output(std::string_view name, Value v) const {
    return Status(services.edit->add_output(raw, str(name), v.id));
  }
  Status set_type(Value v, const Type& type) const {
    return Status(services.edit->set_type(raw, v.id, TypeView(type).get()));
  }
  Status set_input(Node n, uint64_t i, Value v) const {
    return Status(services.edit->set_input(raw, n.id, i, v.id));
  }
  Status set_attr(Node n, const Attr& attr) const {
    return Status(services.edit->set_attr(raw, n.id, str(attr.name), attr.value));
  }
  Status set_note(uint64_t id, std::string_view key, const tn_any& any) const {
    return Status(services.edit->set_note(raw, id, str(key), any));
  }
  Status replace(Value from, Value to) const {
    return Status(services.edit->replace_uses(raw, from.id, to.id));
  }
  Status erase(Node n) const { return Status(services.edit->erase_node(raw, n.id)); }
};

class Edit : public EditView {
 public:
  static Result<Edit> begin(tn_graph* graph) {
    tn_edit* raw = nullptr;
    TN_CHECK(services.edit->begin(graph, &raw));
    return Edit(raw);
  }
  Edit(Edit&& other) noexcept : EditView{std::exchange(other.raw, nullptr)} {}
  Edit& operator=(Edit&&) = delete;
  ~Edit() {
    if (raw) services.edit->rollback(raw);
  }
  Status commit() { return Status(services.edit->commit(std::exchange(raw, nullptr))); }

 private:
  explicit Edit(tn_edit* taken) : EditView{taken} {}
};

// All nodes that nothing reads, and those that only such read.
inline Status erase_unused(EditView edit) {
  std::vector<Node> nodes = edit.graph().nodes();
  for (size_t i = nodes.size(); i-- > 0;)
    if (!nodes[i].is_used()) TN_CHECK(edit.erase(nodes[i]));
  return {};
}

inline Result<Node> EditView::add(const NodeSpec& spec) const {
  std::vector<tn_value_id> inputs;
  for (const Value& v : spec.inputs)
    inputs.push_back(v.id);
  std::vector<tn_str> names, outputs;
  std::vector<tn_any> values;
  for (const Attr& attr : spec.attrs) {
    names.push_back(str(attr.name));
    values.push_back(attr.value);
  }
  for (std::string_view name : spec.output_names)
    outputs.push_back(str(name));
  tn_node_desc desc{sizeof desc,
                    0,
                    str(spec.domain),
                    str(spec.type),
                    str(spec.name),
                    str(spec.scope),
                    inputs.data(),
                    inputs.size(),
                    spec.n_outputs,
                    names.data(),
                    values.data(),
                    names.size(),
                    outputs.empty() ? nullptr : outputs.data()};
  tn_node_id id = 0;
  TN_CHECK(services.edit->add_node(raw, &desc, &id, nullptr));
  return node(id);
}

}  // namespace tenon
