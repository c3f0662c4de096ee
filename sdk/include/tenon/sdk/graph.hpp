// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading a graph in C++: Graph, Node and Value are small borrowed handles (a pointer and an id);
// they stay valid as the host says: text and types until the next commit.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tenon/sdk/any.hpp"

namespace tenon {

struct Node;

struct Value {
  const tn_graph* graph = nullptr;
  tn_value_id id = 0;

  explicit operator bool() const { return id != 0; }
  bool operator==(const Value& other) const { return id == other.id; }
  std::string_view name() const { return view(services.graph->value_name(graph, id)); }
  Type type() const { return Type(raw_type()); }
  // Borrows what the graph holds.
  tn_type raw_type() const {
    tn_type raw{};
    raw.struct_size = sizeof raw;
    raw.rank = TN_RANK_UNKNOWN;
    Status ignored(services.graph->value_type(graph, id, &raw));  // stale: type not known
    return raw;
  }
  uint32_t dtype() const { return raw_type().dtype; }
  bool is_constant() const { return services.graph->constant(graph, id) != nullptr; }
  Tensor constant() const { return Tensor::share(services.graph->constant(graph, id)); }
  bool is_output() const { return services.graph->is_output(graph, id) != 0; }
  uint64_t consumer_count() const { return services.graph->consumer_count(graph, id); }
  bool is_used() const { return id != 0 && (consumer_count() > 0 || is_output()); }
  Node consumer(uint64_t i, uint64_t* input = nullptr) const;
  Node producer(uint64_t* output = nullptr) const;  // falsy for inputs and constants
  tn_any note(std::string_view key) const {
    tn_any out{};
    Status ignored(services.graph->note(graph, id, str(key), &out));
    return out;
  }
};

struct Node {
  const tn_graph* graph = nullptr;
  tn_node_id id = 0;

  explicit operator bool() const { return id != 0; }
  bool operator==(const Node& other) const { return id == other.id; }
  struct Op {
    std::string_view domain, type;
  };
  Op op() const {
    tn_str domain{}, type{};
    Status ignored(services.graph->node_op(graph, id, &domain, &type));
    return {view(domain), view(type)};
  }
  std::string_view type() const { return op().type; }
  std::string_view domain() const { return op().domain; }
  bool is(std::string_view onnx_type) const {
    const Op own = op();
    return own.type == onnx_type && own.domain.empty();
  }
  std::string_view name() const { return view(services.graph->node_name(graph, id)); }
  std::string_view scope() const { return view(services.graph->node_scope(graph, id)); }
  uint64_t n_inputs() const { return services.graph->io_count(graph, id, TN_LIST_INPUTS); }
  uint64_t n_outputs() const { return services.graph->io_count(graph, id, TN_LIST_OUTPUTS); }
  // Falsy beyond the end and for absent optional inputs.
  Value input(uint64_t i) const {
    return {graph, i < n_inputs() ? services.graph->io_at(graph, id, TN_LIST_INPUTS, i) : 0};
  }
  Value output(uint64_t i = 0) const {
    return {graph, i < n_outputs() ? services.graph->io_at(graph, id, TN_LIST_OUTPUTS, i) : 0};
  }
  std::vector<Value> inputs() const { return values(TN_LIST_INPUTS); }
  std::vector<Value> outputs() const { return values(TN_LIST_OUTPUTS); }
  bool is_used() const {
    for (Value v : outputs())
      if (v.is_used()) return true;
    return false;
  }
  tn_any attr(std::string_view name) const {
    tn_any out{};
    Status ignored(services.graph->attr(graph, id, str(name), &out));
    return out;
  }
  int64_t attr_int(std::string_view name, int64_t fallback = 0) const {
    return int_of(attr(name), fallback);
  }
  double attr_float(std::string_view name, double fallback = 0) const {
    return float_of(attr(name), fallback);
  }
  std::string_view attr_text(std::string_view name, std::string_view fallback = {}) const {
    return text_of(attr(name), fallback);
  }
  std::vector<int64_t> attr_ints(std::string_view name) const { return ints_of(attr(name)); }
  const tn_op* row() const { return services.op->of(graph, id); }
  // The row's quant, cast, recompute and coupling; falsy when no loaded plugin brings the operator.
  const tn_op_columns* columns() const {
    const tn_op* op = row();
    return op ? services.columns->columns(op) : nullptr;
  }
  // The row's axes; falsy when it has none.
  const tn_axes* axes() const {
    const tn_op* op = row();
    const tn_axes* out = nullptr;
    if (op && op->axes.len) Status ignored(services.op->axes(op, &out));
    return out;
  }

 private:
  std::vector<Value> values(uint32_t which) const {
    std::vector<Value> out(services.graph->io_count(graph, id, which));
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = {graph, services.graph->io_at(graph, id, which, i)};
    return out;
  }
};

inline Node Value::producer(uint64_t* output) const {
  uint64_t index = 0;
  Node node{graph, services.graph->producer(graph, id, &index)};
  if (output) *output = index;
  return node;
}

inline Node Value::consumer(uint64_t i, uint64_t* input) const {
  uint64_t index = 0;
  Node node{graph, services.graph->consumer_at(graph, id, i, &index)};
  if (input) *input = index;
  return node;
}

// The nodes that values need, each after what it needs.
inline std::vector<Node> nodes_behind(const std::vector<Value>& values) {
  std::vector<Node> order, stack;
  std::unordered_map<tn_node_id, bool> done;  // false: on the way
  for (Value value : values)
    if (Node node = value.producer()) stack.push_back(node);
  while (!stack.empty()) {
    Node node = stack.back();
    auto [at, fresh] = done.emplace(node.id, false);
    if (!fresh) {
      stack.pop_back();
      if (!at->second) order.push_back(node);
      at->second = true;
      continue;
    }
    for (Value input : node.inputs()) {
      Node before = input ? input.producer() : Node{};
      if (before && !done.count(before.id)) stack.push_back(before);
    }
  }
  return order;
}

// A borrowed graph.
struct Graph {
  const tn_graph* raw = nullptr;

  uint64_t n_nodes() const { return services.graph->count(raw, TN_LIST_NODES); }
  Node node(uint64_t i) const { return {raw, services.graph->node_at(raw, i)}; }
  std::vector<Node> nodes() const {  // in topological order
    std::vector<Node> out;
    for (uint64_t i = 0, n = n_nodes(); i < n; ++i)
      out.push_back(node(i));
    return out;
  }
  std::vector<Value> inputs() const { return list(TN_LIST_INPUTS); }
  std::vector<Value> outputs() const { return list(TN_LIST_OUTPUTS); }
  std::vector<Value> constants() const { return list(TN_LIST_CONSTANTS); }
  std::vector<Value> list(uint32_t which, uint32_t side = 0) const {
    std::vector<Value> out;
    for (uint64_t i = 0, n = services.graph->count(raw, which); i < n; ++i) {
      out.push_back({raw, services.graph->value_at(raw, which, i, side)});
    }
    return out;
  }
  std::string_view input_name(uint64_t i) const {
    return view(services.graph->io_name(raw, TN_LIST_INPUTS, i));
  }
  std::string_view output_name(uint64_t i) const {
    return view(services.graph->io_name(raw, TN_LIST_OUTPUTS, i));
  }
  Value find(std::string_view name) const {
    return {raw, services.graph->find_value(raw, str(name))};
  }
};

// An owned reference to a graph.
class OwnedGraph {
 public:
  OwnedGraph() = default;
  static OwnedGraph take(tn_graph* raw) { return OwnedGraph(raw); }
  static Result<OwnedGraph> copy_of(const tn_graph* graph) {
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->clone(graph, &raw));
    return OwnedGraph(raw);
  }
  OwnedGraph(OwnedGraph&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  OwnedGraph& operator=(OwnedGraph&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~OwnedGraph() {
    if (raw_) services.graph->release(raw_);
  }
  tn_graph* get() const { return raw_; }
  Graph view() const { return {raw_}; }

 private:
  explicit OwnedGraph(tn_graph* raw) : raw_(raw) {}
  tn_graph* raw_ = nullptr;
};

}  // namespace tenon
