// SPDX-License-Identifier: Apache-2.0
#pragma once
// Model: a graph that is never changed. Passes give new models; clones share weights.

#include "tenon/cxx/component.hpp"
#include "tenon/cxx/inspection.hpp"
#include "tenon/cxx/line_diff.hpp"

namespace tenon::cxx {

// An input or output as the world sees it. dims hold TN_DIM_UNKNOWN where symbols may have a name.
struct Port {
  std::string name;
  uint32_t dtype = TN_DTYPE_NONE;
  bool ranked = false;
  std::vector<int64_t> dims = {};
  std::vector<std::string> symbols = {};
  uint32_t kind = TN_KIND_TENSOR;

  std::string text() const {
    std::string out = kind == TN_KIND_SEQUENCE   ? "sequence of "
                      : kind == TN_KIND_OPTIONAL ? "optional "
                                                 : "";
    out += dtype_name(dtype) + "[";
    for (size_t i = 0; i < dims.size(); ++i) {
      std::string dim = dims[i] >= 0         ? std::to_string(dims[i])
                        : symbols[i].empty() ? "?"
                                             : symbols[i];
      out += cat(i ? ", " : "", dim);
    }
    return ranked ? out + "]" : out + "any shape]";
  }
};

class Model {
 public:
  Model() = default;
  Model(const SessionPtr& session, tn_graph* taken)
      : graph_(session, taken, session->graph->release) {}

  static Model load(const SessionPtr& session,
                    const std::string& path,
                    const Json& options = Json::object()) {
    tn_graph* raw = nullptr;
    check(tenon_load(session->raw(), str(path), str(dump(options)), session->cancel(), &raw));
    return {session, raw};
  }
  void save(const std::string& path, const Json& options = Json::object()) const {
    check(tenon_save(session()->raw(), get(), str(path), str(dump(options)), session()->cancel()));
  }
  // report: the pass's report, null when it has none.
  Model apply(const std::string& pass, const Options& options, Json* report = nullptr) const {
    TextSink text;
    tn_graph* raw = nullptr;
    check(tenon_apply(session()->raw(), get(), str(pass), options.get(), session()->cancel(),
                      text.get(), &raw));
    Model made(session(), raw);
    if (report) *report = Json::parse(text.text(), nullptr, false);
    if (report && report->is_discarded()) *report = Json();
    return made;
  }
  Json inspect() const { return cxx::inspect(*session(), get()); }
  // Canonical text; large constants by hash.
  std::string text() const {
    TextSink text;
    check(services().print(get(), 0, text.get()));
    return std::move(text.text());
  }
  std::string diff(const Model& after) const { return diff_lines(text(), after.text()); }
  // Bytes of all constants, those in bodies of control flow too.
  uint64_t bytes() const {
    uint64_t sum = 0;
    for_each_graph(get(), [&](const tn_graph* graph) {
      for (uint64_t i = 0; i < services().count(graph, TN_LIST_CONSTANTS); ++i) {
        tn_value_id value = services().value_at(graph, TN_LIST_CONSTANTS, i, 0);
        if (const tn_tensor* tensor = services().constant(graph, value))
          sum += session()->tensor->bytes(tensor);
      }
    });
    return sum;
  }

  // Those of the graph itself by name, sharing its memory.
  std::map<std::string, Tensor> constants() const {
    std::map<std::string, Tensor> all;
    for (uint64_t i = 0; i < services().count(get(), TN_LIST_CONSTANTS); ++i) {
      tn_value_id value = services().value_at(get(), TN_LIST_CONSTANTS, i, 0);
      tn_tensor* raw = services().constant(get(), value);
      session()->tensor->retain(raw);
      all.emplace(view(services().value_name(get(), value)), Tensor::take(session(), raw));
    }
    return all;
  }

  // State is neither given nor handed out: it is no input and no output here.
  std::vector<Port> inputs() const { return ports(TN_LIST_INPUTS, false); }
  std::vector<Port> outputs() const { return ports(TN_LIST_OUTPUTS, false); }
  std::vector<Port> states() const { return ports(TN_LIST_INPUTS, true); }
  Port port_of(tn_value_id value) const { return port_in(*session(), get(), value); }
  static Port port_in(const Session& session, const tn_graph* graph, tn_value_id value) {
    tn_type type{};
    type.struct_size = sizeof type;
    check(session.graph->value_type(graph, value, &type));
    Port port{std::string(view(session.graph->value_name(graph, value))), type.dtype};
    port.kind = type.kind;
    port.ranked = type.rank != TN_RANK_UNKNOWN;
    for (uint32_t i = 0; port.ranked && i < type.rank; ++i) {
      port.dims.push_back(type.dims[i]);
      port.symbols.emplace_back(type.symbols ? view(type.symbols[i]) : "");
    }
    return port;
  }
  // In the graph or in a body of control flow.
  bool has_op(std::string_view name) const {
    bool found = false;
    for_each_graph(get(), [&](const tn_graph* graph) {
      for (uint64_t i = 0; !found && i < services().count(graph, TN_LIST_NODES); ++i) {
        tn_str domain{};
        tn_str type{};
        check(services().node_op(graph, services().node_at(graph, i), &domain, &type));
        found = view(type) == name;
      }
    });
    return found;
  }
  // The same model for these shapes of its inputs, which states are not, all types inferred again.
  Model bind(const std::vector<Tensor>& inputs) const {
    std::vector<tn_type> types(inputs.size());
    std::vector<const tn_type*> given;
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::span<const int64_t> shape = inputs[i].shape();
      types[i] = {sizeof(tn_type),   TN_KIND_TENSOR,
                  inputs[i].dtype(), static_cast<uint32_t>(shape.size()),
                  shape.data(),      nullptr};
      given.push_back(&types[i]);
    }
    // States stay as they are.
    std::vector<const tn_type*> all;
    size_t next = 0;
    for (uint64_t i = 0; i < services().count(get(), TN_LIST_INPUTS); ++i) {
      bool is_given = !is_state(services().value_at(get(), TN_LIST_INPUTS, i, 0), 0);
      all.push_back(is_given && next < given.size() ? given[next++] : nullptr);
    }
    if (next != given.size())
      throw Error(TN_INVALID_ARGUMENT, cat("bind: expected ", next, " inputs, got ", given.size()));
    tn_graph* raw = nullptr;
    check(services().bind(get(), all.data(), all.size(), &raw));
    return {session(), raw};
  }

  // Another reference to the same graph.
  Model share() const {
    services().retain(graph_.get());
    return {session(), graph_.get()};
  }

  const tn_graph* get() const { return graph_.get(); }
  const SessionPtr& session() const { return graph_.session(); }
  const tn_host_graph& services() const { return *session()->graph; }

 private:
  // The graph and all bodies in it, theirs too.
  template <class F>
  void for_each_graph(const tn_graph* graph, const F& visit) const {
    visit(graph);
    for (uint64_t i = 0; i < services().count(graph, TN_LIST_NODES); ++i) {
      tn_node_id node = services().node_at(graph, i);
      for (uint64_t k = 0; k < services().attr_count(graph, node); ++k) {
        tn_any value{};
        check(services().attr(graph, node, services().attr_name(graph, node, k), &value));
        if (value.tag == TN_ANY_GRAPH)
          for_each_graph(static_cast<const tn_graph*>(value.v.p), visit);
      }
    }
  }
  bool is_state(tn_value_id value, uint32_t side) const {
    for (uint64_t i = 0; i < services().count(get(), TN_LIST_STATES); ++i) {
      if (services().value_at(get(), TN_LIST_STATES, i, side) == value) return true;
    }
    return false;
  }
  std::vector<Port> ports(uint32_t which, bool states) const {
    std::vector<Port> all;
    for (uint64_t i = 0; i < services().count(get(), which); ++i) {
      tn_value_id value = services().value_at(get(), which, i, 0);
      if (is_state(value, which == TN_LIST_INPUTS ? 0 : 1) != states) continue;
      all.push_back(port_of(value));
      all.back().name = view(services().io_name(get(), which, i));
    }
    return all;
  }
  Handle<tn_graph> graph_;
};

}  // namespace tenon::cxx
