// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a model is made of: inputs and outputs with types, operators with counts, parameters, bytes,
// work of each node.

#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "tenon/cxx/element_type.hpp"
#include "tenon/cxx/node_cost.hpp"

namespace tenon::cxx {

class Inspection {
 public:
  using Json = nlohmann::ordered_json;
  Inspection(const Services& services, const tn_graph* graph)
      : services_(services), costs_(services), graph_(graph) {}

  // Once for each object.
  Json run() {
    Json inputs = values(TN_LIST_INPUTS), outputs = values(TN_LIST_OUTPUTS);
    Json nodes = Json::array();
    visit(graph_, &nodes);
    Json operators = Json::object();
    for (const auto& [op, count] : operators_)
      operators[op] = count;
    return {{"inputs", std::move(inputs)},
            {"outputs", std::move(outputs)},
            {"states", graphs().count(graph_, TN_LIST_STATES)},
            {"operators", std::move(operators)},
            {"parameters", parameters_},
            {"bytes", bytes_},
            {"flops", flops_},
            {"nodes_of_unknown_cost", unknown_},
            {"nodes", std::move(nodes)}};
  }

 private:
  static constexpr std::string_view kKinds[] = {"tensor", "sequence", "optional"};
  const tn_host_graph& graphs() const { return *services_.graph; }

  Json type_json(tn_value_id value) const {
    tn_type type{};
    type.struct_size = sizeof type;
    check(graphs().value_type(graph_, value, &type));
    Json out{{"kind", type.kind < std::size(kKinds) ? kKinds[type.kind] : "?"},
             {"dtype", type.dtype == TN_DTYPE_NONE ? Json() : Json(short_dtype_name(type.dtype))}};
    Json shape = type.rank == TN_RANK_UNKNOWN ? Json() : Json::array();
    for (uint32_t i = 0; shape.is_array() && i < type.rank; ++i) {
      const std::string_view symbol = type.symbols ? view(type.symbols[i]) : "";
      if (type.dims[i] >= 0)
        shape.push_back(type.dims[i]);
      else
        shape.push_back(symbol.empty() ? Json() : Json(symbol));
    }
    out["shape"] = std::move(shape);
    return out;
  }

  Json values(uint32_t which) const {
    Json all = Json::array();
    for (uint64_t i = 0; i < graphs().count(graph_, which); ++i) {
      Json one{{"name", view(graphs().io_name(graph_, which, i))}};
      one.update(type_json(graphs().value_at(graph_, which, i, 0)));
      all.push_back(std::move(one));
    }
    return all;
  }

  // Operators and constants count in bodies of control flow too, which are not listed.
  void visit(const tn_graph* graph, Json* listed) {
    count_constants(graph);
    for (uint64_t i = 0; i < graphs().count(graph, TN_LIST_NODES); ++i) {
      const tn_node_id node = graphs().node_at(graph, i);
      tn_str domain{};
      tn_str type{};
      check(graphs().node_op(graph, node, &domain, &type));
      const std::string op = cat(view(domain), domain.len ? ":" : "", view(type));
      ++operators_[op];
      for (uint64_t k = 0; k < graphs().attr_count(graph, node); ++k) {
        tn_any any{};
        check(graphs().attr(graph, node, graphs().attr_name(graph, node, k), &any));
        if (any.tag == TN_ANY_GRAPH) visit(static_cast<const tn_graph*>(any.v.p), nullptr);
      }
      if (listed) listed->push_back(node_json(graph, node, op));
    }
  }

  Json node_json(const tn_graph* graph, tn_node_id node, const std::string& op) {
    const std::optional<NodeCost> cost = costs_.of(graph, node);
    flops_ += cost ? cost->flops : 0;
    unknown_ += cost ? 0 : 1;
    return {{"name", view(graphs().node_name(graph, node))},
            {"op", op},
            {"flops", cost ? Json(cost->flops) : Json()},
            {"bytes", cost ? Json(cost->bytes) : Json()}};
  }

  void count_constants(const tn_graph* graph) {
    for (uint64_t i = 0; i < graphs().count(graph, TN_LIST_CONSTANTS); ++i) {
      const tn_value_id value = graphs().value_at(graph, TN_LIST_CONSTANTS, i, 0);
      parameters_ += costs_.elements(graph, value).value_or(0);
      if (const tn_tensor* tensor = graphs().constant(graph, value))
        bytes_ += services_.tensor->bytes(tensor);
    }
  }

  const Services& services_;
  const NodeCosts costs_;
  const tn_graph* graph_;
  std::map<std::string, uint64_t> operators_;
  uint64_t parameters_ = 0;  // elements of constants
  uint64_t bytes_ = 0;       // and their bytes
  double flops_ = 0;
  uint64_t unknown_ = 0;
};

// Of a graph, whose functions may run plugins' rows. Throws Error.
inline nlohmann::ordered_json inspect(const Services& services, const tn_graph* graph) {
  return Inspection(services, graph).run();
}

}  // namespace tenon::cxx
