// SPDX-License-Identifier: Apache-2.0
// tenon.h: what a model is made of, as JSON.
#include <map>

#include <nlohmann/json.hpp>

#include "tenon/host/graph.h"
#include "tenon/host/tensor.h"

#include "capi/capi.hpp"
#include "graph/attributes.hpp"
#include "report/node_cost.hpp"
#include "services/boundary.hpp"
#include "values/dtype.hpp"

namespace tenon::host {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kKinds[] = {"tensor", "sequence", "optional"};

class Inspection {
 public:
  explicit Inspection(const tn_graph* graph)
      : graphs_(*service<tn_host_graph>("tenon.host.graph/1")), graph_(graph) {}

  Result<std::string> run() {
    TN_TRY(inputs, values(TN_LIST_INPUTS));
    TN_TRY(outputs, values(TN_LIST_OUTPUTS));
    Json nodes = Json::array();
    TN_CHECK(visit(graph_, &nodes));
    Json operators = Json::object();
    for (const auto& [op, count] : operators_)
      operators[op] = count;
    Json all{{"inputs", std::move(inputs)},
             {"outputs", std::move(outputs)},
             {"states", graphs_.count(graph_, TN_LIST_STATES)},
             {"operators", std::move(operators)},
             {"parameters", parameters_},
             {"bytes", bytes_},
             {"flops", flops_},
             {"nodes_of_unknown_cost", unknown_},
             {"nodes", std::move(nodes)}};
    return all.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  Result<Json> type_json(tn_value_id value) {
    tn_type type{};
    type.struct_size = sizeof type;
    TN_CHECK(Status(graphs_.value_type(graph_, value, &type)));
    Json out{{"kind", type.kind < std::size(kKinds) ? kKinds[type.kind] : "?"},
             {"dtype", type.dtype == TN_DTYPE_NONE ? Json() : Json(dtype_name(type.dtype))}};
    Json shape = type.rank == TN_RANK_UNKNOWN ? Json() : Json::array();
    for (uint32_t i = 0; shape.is_array() && i < type.rank; ++i) {
      std::string_view symbol = type.symbols ? view(type.symbols[i]) : "";
      if (type.dims[i] >= 0)
        shape.push_back(type.dims[i]);
      else
        shape.push_back(symbol.empty() ? Json() : Json(symbol));
    }
    out["shape"] = std::move(shape);
    return out;
  }

  Result<Json> values(uint32_t which) {
    Json all = Json::array();
    for (uint64_t i = 0; i < graphs_.count(graph_, which); ++i) {
      Json one{{"name", view(graphs_.io_name(graph_, which, i))}};
      TN_TRY(type, type_json(graphs_.value_at(graph_, which, i, 0)));
      one.update(type);
      all.push_back(std::move(one));
    }
    return all;
  }

  // Operators and constants count in bodies of control flow too, which are not listed.
  Status visit(const tn_graph* graph, Json* listed) {
    count_constants(graph);
    for (uint64_t i = 0; i < graphs_.count(graph, TN_LIST_NODES); ++i) {
      tn_node_id node = graphs_.node_at(graph, i);
      tn_str domain{};
      tn_str type{};
      TN_CHECK(Status(graphs_.node_op(graph, node, &domain, &type)));
      std::string op = cat(view(domain), domain.len ? ":" : "", view(type));
      ++operators_[op];
      for (uint64_t k = 0; k < graphs_.attr_count(graph, node); ++k) {
        tn_any any{};
        TN_CHECK(Status(graphs_.attr(graph, node, graphs_.attr_name(graph, node, k), &any)));
        if (const tn_graph* body = graph_in(any)) TN_CHECK(visit(body, nullptr));
      }
      if (!listed) continue;
      std::optional<NodeCost> cost = node_cost(graph, node);
      flops_ += cost ? cost->flops : 0;
      unknown_ += cost ? 0 : 1;
      listed->push_back({{"name", view(graphs_.node_name(graph, node))},
                         {"op", op},
                         {"flops", cost ? Json(cost->flops) : Json()},
                         {"bytes", cost ? Json(cost->bytes) : Json()}});
    }
    return {};
  }

  void count_constants(const tn_graph* graph) {
    const auto& tensors = *service<tn_host_tensor>("tenon.host.tensor/1");
    for (uint64_t i = 0; i < graphs_.count(graph, TN_LIST_CONSTANTS); ++i) {
      tn_value_id value = graphs_.value_at(graph, TN_LIST_CONSTANTS, i, 0);
      parameters_ += value_elements(graph, value).value_or(0);
      if (const tn_tensor* tensor = graphs_.constant(graph, value)) bytes_ += tensors.bytes(tensor);
    }
  }

  const tn_host_graph& graphs_;
  const tn_graph* graph_;
  std::map<std::string, uint64_t> operators_;
  uint64_t parameters_ = 0;  // elements of constants
  uint64_t bytes_ = 0;       // and their bytes
  double flops_ = 0;
  uint64_t unknown_ = 0;
};

}  // namespace
}  // namespace tenon::host

namespace tenon::host::exported {

tn_status* tenon_inspect(tenon_session*, const tn_graph* graph, const tn_sink* sink) {
  return guarded([&]() -> Status {
    TN_TRY(text, Inspection(graph).run());
    return write_to(sink, text);
  });
}

}  // namespace tenon::host::exported
