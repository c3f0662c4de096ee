// SPDX-License-Identifier: Apache-2.0
#pragma once
// A part of a tn_graph in the form that a compiler reads and rewrites: indices in place of ids,
// attributes and expressions at hand, constants borrowed from tensors that the values keep alive.
//
//   TN_TRY(graph, tenon::backend::import_graph(part));
//   for (const Node& node : graph.nodes) ... graph.values[node.inputs[0]].dims ...
//
// A backend that wants more of its values or nodes derives from Value or Node and names the two as
// arguments of BasicGraph.

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tenon/expr.h"

#include "tenon/sdk/graph.hpp"

namespace tenon::backend {

using Dims = std::vector<int64_t>;
constexpr int kNone = -1;  // an absent optional input, or no producer

using AttributeValue =
    std::variant<int64_t, double, std::string, Dims, std::vector<double>, std::vector<std::string>>;
struct Attribute {
  std::string name;
  AttributeValue value;
};

struct Value {
  std::string name;
  uint32_t dtype = TN_DTYPE_NONE;
  Dims dims;                   // empty where it is not known
  bool is_known = false;       // a tensor whose type and shape do not depend on data
  Tensor constant;             // of constants; keeps `data` alive
  const void* data = nullptr;  // constants: dense, row-major
  int producer = kNone;
  std::vector<int> users;  // node indices, one entry per use
  int n_outputs = 0;       // how often it is an output of the graph, or a state's new value

  int64_t count() const { return element_count(dims); }
  uint64_t bytes() const { return bytes_of(dtype, count()); }
};

// Attributes are those that the node states; what it leaves out is the reader's to know, or the
// row's by `source`, which is good while the tn_graph is.
struct Node {
  std::string op;  // "MatMul", or "domain.Type"
  std::string name;
  std::vector<int> inputs = {};  // value indices; kNone where absent
  std::vector<int> outputs = {};
  std::vector<Attribute> attributes = {};
  std::vector<tn_expr_node> expr = {};     // pointwise operators: their scalar program; else empty
  uint32_t domain = TN_EXPR_DOMAIN_FLOAT;  // of expr
  uint32_t bits = 0;                       // to which integers of expr wrap
  bool is_cheap = false;                   // by its row: better computed again than kept
  tenon::Node source = {};
  std::string unbound = {};  // why there is no expr although the row has an expression

  int input(size_t i) const { return i < inputs.size() ? inputs[i] : kNone; }
  int output(size_t i) const { return i < outputs.size() ? outputs[i] : kNone; }
  // The expression as the ABI has it; borrows this node's.
  tn_expr_program program() const {
    return {expr.data(), expr.size(), static_cast<uint32_t>(inputs.size()), domain, bits, 0};
  }

  const AttributeValue* find(std::string_view attribute) const {
    for (const Attribute& a : attributes)
      if (a.name == attribute) return &a.value;
    return nullptr;
  }
  int64_t integer(std::string_view attribute, int64_t fallback) const {
    const auto* found = as<int64_t>(attribute);
    return found ? *found : fallback;
  }
  double real(std::string_view attribute, double fallback) const {
    if (const auto* found = as<double>(attribute)) return *found;
    const auto* whole = as<int64_t>(attribute);
    return whole ? static_cast<double>(*whole) : fallback;
  }
  std::string text(std::string_view attribute, const char* fallback) const {
    const auto* found = as<std::string>(attribute);
    return found ? *found : fallback;
  }
  // An empty list is what rows take for one that is left out.
  Dims integers(std::string_view attribute, const Dims& fallback = {}) const {
    const auto* found = as<Dims>(attribute);
    return found && !found->empty() ? *found : fallback;
  }

 private:
  template <class T>
  const T* as(std::string_view attribute) const {
    const AttributeValue* value = find(attribute);
    return value ? std::get_if<T>(value) : nullptr;
  }
};

template <class V = Value, class N = Node>
struct BasicGraph {
  std::vector<V> values;
  std::vector<N> nodes;  // in topological order
  std::vector<int> inputs;
  std::vector<int> outputs;
  // Values kept from run to run: before and after. They are neither inputs nor outputs.
  std::vector<std::pair<int, int>> states;

  const V& value(int i) const { return values[static_cast<size_t>(i)]; }
  const N& node(int i) const { return nodes[static_cast<size_t>(i)]; }

  int add_value(V value) {
    values.push_back(std::move(value));
    return static_cast<int>(values.size()) - 1;
  }
  // The node's outputs get their producer; users are filled by finish().
  int add_node(N node) {
    int index = static_cast<int>(nodes.size());
    for (int output : node.outputs)
      if (output != kNone) values[static_cast<size_t>(output)].producer = index;
    nodes.push_back(std::move(node));
    return index;
  }
  void add_output(int value) { outputs.push_back(value); }
  // The nodes in another order, with producers and users of values renewed.
  void reorder(std::vector<N> ordered) {
    nodes.clear();
    for (N& node : ordered)
      add_node(std::move(node));
    finish();
  }
  // The nodes without those that are marked, whose results nobody reads any more.
  void drop(const std::vector<bool>& gone) {
    if (std::find(gone.begin(), gone.end(), true) == gone.end()) return finish();
    std::vector<N> kept;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (!gone[i]) kept.push_back(std::move(nodes[i]));
    reorder(std::move(kept));
  }
  // Finds who reads each value.
  void finish() {
    for (V& value : values) {
      value.users.clear();
      value.n_outputs = 0;
    }
    for (size_t i = 0; i < nodes.size(); ++i)
      for (int input : nodes[i].inputs)
        if (input != kNone) values[static_cast<size_t>(input)].users.push_back(static_cast<int>(i));
    for (int output : outputs)
      ++values[static_cast<size_t>(output)].n_outputs;
    for (const auto& [before, after] : states)
      ++values[static_cast<size_t>(after)].n_outputs;
  }
  // The node that alone reads the value, once; kNone when others do or the graph gives it away.
  int only_user(int index) const {
    const V& read = value(index);
    return read.n_outputs == 0 && read.users.size() == 1 ? read.users[0] : kNone;
  }
};

using Graph = BasicGraph<>;

// Broadcast by NumPy's rules: `from` stretches to `to`.
inline bool broadcasts_to(const Dims& from, const Dims& to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t dim = from[from.size() - 1 - i];
    if (dim != 1 && dim != to[to.size() - 1 - i]) return false;
  }
  return true;
}
inline Dims row_major_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(dims[i], 1);
  return strides;
}

// Whether results of the operator are better computed again than kept: its row says so, and it has
// a kernel to run again.
bool is_cheap(const tn_op* row);
// Why a node cannot be compiled for fixed shapes, for the report: an input or output whose type or
// shape depends on data, an expression that cannot be bound. Empty: nothing speaks against it.
template <class G>
std::string why_not_static(const G& graph, int node);
// Fails for nothing that a graph can be: what is not known is marked.
template <class G = Graph>
Result<G> import_graph(const tn_graph* source);

// ---- definitions

inline bool is_cheap(const tn_op* row) {
  if (!row) return false;
  const tn_op_columns* columns = services.columns->columns(row);
  return columns && columns->recompute <= TN_RECOMPUTE_FUSIBLE && !(row->traits & TN_OP_VIEW);
}

namespace detail {

inline void add_attribute(std::vector<Attribute>& to, std::string_view name, const tn_any& any) {
  auto add = [&](AttributeValue value) { to.push_back({std::string(name), std::move(value)}); };
  switch (any.tag) {
    case TN_ANY_I64:
    case TN_ANY_BOOL:
      return add(any.v.i);
    case TN_ANY_F64:
      return add(any.v.f);
    case TN_ANY_TEXT:
      return add(std::string(text_of(any)));
    case TN_ANY_I64S:
      return add(ints_of(any));
    case TN_ANY_F64S:
      return add(floats_of(any));
    case TN_ANY_TEXTS:
      return add(texts_of(any));
    default:
      return;  // tensors, types and graphs: through Node::source
  }
}

inline void bind_expression(Node& node) {
  const tn_op* row = node.source.row();
  node.is_cheap = is_cheap(row);
  if (!row || row->expr.len == 0) return;
  const tn_expr_program* program = nullptr;
  Status bound(services.op->expr(node.source.graph, node.source.id, &program));
  if (!bound.ok()) {
    node.unbound = bound.text();
    return;
  }
  node.expr.assign(program->nodes, program->nodes + program->count);
  node.domain = program->domain;
  node.bits = program->bits;
}

template <class G>
class Importer {
 public:
  explicit Importer(const tn_graph* source) : source_{source} {}

  Result<G> run() {
    std::vector<tenon::Value> before = source_.list(TN_LIST_STATES, 0);
    std::vector<tenon::Value> after = source_.list(TN_LIST_STATES, 1);
    auto is_among = [](const std::vector<tenon::Value>& list, tenon::Value value) {
      return std::find(list.begin(), list.end(), value) != list.end();
    };
    const uint64_t n_nodes = source_.n_nodes();
    made_.nodes.reserve(n_nodes);
    index_.reserve(2 * n_nodes);
    for (tenon::Value input : source_.inputs()) {
      int index = index_of(input.id);
      if (!is_among(before, input)) made_.inputs.push_back(index);
    }
    for (uint64_t i = 0; i < n_nodes; ++i)
      add(source_.node(i));
    for (tenon::Value output : source_.outputs())
      if (!is_among(after, output)) made_.outputs.push_back(index_of(output.id));
    for (size_t i = 0; i < before.size(); ++i)
      made_.states.emplace_back(index_of(before[i].id), index_of(after[i].id));
    made_.finish();
    return std::move(made_);
  }

 private:
  using V = typename decltype(G::values)::value_type;
  using N = typename decltype(G::nodes)::value_type;

  int index_of(tn_value_id id) {
    if (id == 0) return kNone;
    auto [found, is_new] = index_.try_emplace(id, static_cast<int>(made_.values.size()));
    if (!is_new) return found->second;
    const tenon::Value source{source_.raw, id};
    const tn_type type = source.raw_type();
    V value;
    value.name = source.name();
    value.dtype = type.dtype;
    value.is_known = is_known(type);
    if (value.is_known) value.dims.assign(type.dims, type.dims + type.rank);
    if (tn_tensor* constant = services.graph->constant(source.graph, id)) {
      value.constant = Tensor::share(constant);
      value.data = value.constant.template data<const void>();
    }
    return made_.add_value(std::move(value));
  }

  static bool is_known(const tn_type& type) {
    return type.kind == TN_KIND_TENSOR && type.dtype != TN_DTYPE_NONE &&
           type.rank != TN_RANK_UNKNOWN &&
           std::all_of(type.dims, type.dims + type.rank, [](int64_t size) { return size >= 0; });
  }

  std::vector<int> indices_of(const tenon::Node& node, uint32_t which) {
    std::vector<int> out(services.graph->io_count(node.graph, node.id, which));
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = index_of(services.graph->io_at(node.graph, node.id, which, i));
    return out;
  }

  void add(const tenon::Node& source) {
    N node;
    const auto [domain, type] = source.op();
    bool is_onnx = domain.empty() || domain == "ai.onnx";
    node.op = is_onnx ? std::string(type) : cat(domain, ".", type);
    node.name = source.name();
    node.source = source;
    node.inputs = indices_of(source, TN_LIST_INPUTS);
    node.outputs = indices_of(source, TN_LIST_OUTPUTS);
    const uint64_t n = services.graph->attr_count(source.graph, source.id);
    node.attributes.reserve(n);
    for (uint64_t i = 0; i < n; ++i) {
      std::string_view name = view(services.graph->attr_name(source.graph, source.id, i));
      add_attribute(node.attributes, name, source.attr(name));
    }
    bind_expression(node);
    made_.add_node(std::move(node));
  }

  tenon::Graph source_;
  G made_;
  std::unordered_map<tn_value_id, int> index_;
};

}  // namespace detail

template <class G>
std::string why_not_static(const G& graph, int index) {
  const auto& node = graph.node(index);
  if (!node.unbound.empty()) return node.unbound;
  for (const std::vector<int>* list : {&node.inputs, &node.outputs})
    for (int value : *list)
      if (value != kNone && !graph.value(value).is_known)
        return cat("the type or shape of value ", graph.value(value).name, " depends on data");
  return {};
}

template <class G>
Result<G> import_graph(const tn_graph* source) {
  return detail::Importer<G>(source).run();
}

}  // namespace tenon::backend
