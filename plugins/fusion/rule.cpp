// SPDX-License-Identifier: Apache-2.0
#include "rule.hpp"

#include <algorithm>

#include "tenon/nearest.hpp"

namespace tenon::fusion {
namespace {

// The bodies of one node, each changed in a clone that takes its place.
Result<int64_t> run_in_bodies(const Rule& rule,
                              tn_graph* graph,
                              tn_node_id id,
                              const Settings& settings) {
  Node node{graph, id};
  std::vector<std::string> names;
  for (uint64_t i = 0, n = services.graph->attr_count(graph, id); i < n; ++i) {
    std::string name(view(services.graph->attr_name(graph, id, i)));
    if (node.attr(name).tag == TN_ANY_GRAPH) names.push_back(name);
  }
  int64_t total = 0;
  for (const std::string& name : names) {
    TN_TRY(body, OwnedGraph::copy_of(static_cast<const tn_graph*>(node.attr(name).v.p)));
    TN_TRY(applied, run_everywhere(rule, body.get(), settings));
    if (applied == 0) continue;
    TN_TRY(edit, Edit::begin(graph));
    TN_CHECK(edit.set_attr(edit.node(id), {name, any_graph(body.get())}));
    TN_CHECK(edit.commit());
    total += applied;
  }
  return total;
}

// Those of bodies too.
void collect_nodes(const tn_graph* graph, std::vector<Node>* nodes) {
  for (Node node : Graph{const_cast<tn_graph*>(graph)}.nodes()) {
    nodes->push_back(node);
    for (uint64_t i = 0, n = services.graph->attr_count(graph, node.id); i < n; ++i) {
      const std::string name(view(services.graph->attr_name(graph, node.id, i)));
      const tn_any attribute = node.attr(name);
      if (attribute.tag == TN_ANY_GRAPH)
        collect_nodes(static_cast<const tn_graph*>(attribute.v.p), nodes);
    }
  }
}

Status refuse_scope(const std::string& scope, const std::vector<Node>& nodes) {
  const std::string below = scope + "/";
  std::vector<std::string_view> scopes;
  for (Node node : nodes)
    scopes.push_back(node.scope());
  const bool is_there = std::any_of(scopes.begin(), scopes.end(), [&](std::string_view one) {
    return one == scope || one.starts_with(below);
  });
  if (is_there || scope.empty()) return {};
  return invalid(
      cat("scope: expected the scope of a node, got '", scope, "'", did_you_mean(scope, scopes)));
}

// Operators that stand for others may be absent; a name that no operator has is misspelt.
Status refuse_operator(tn_ctx* ctx, const std::string& name, const std::vector<Node>& nodes) {
  bool is_there = false;
  std::vector<std::string_view> names;
  auto expands = [&](std::string_view type, const tn_op* row) {
    names.push_back(type);
    is_there = is_there || type == name;
    return type == name && row && row->decompose;
  };
  for (Node node : nodes)
    if (expands(node.type(), node.row())) return {};
  for (uint64_t i = 0, n = services.op->count(ctx); i < n; ++i) {
    const tn_op* row = services.op->at(ctx, i);
    if (expands(view(row->type), row)) return {};
  }
  if (is_there) return invalid(cat("option operators: ", name, " stands for no others"));
  return invalid(
      cat("option operators: there is no operator '", name, "'", did_you_mean(name, names)));
}

}  // namespace

Settings Settings::from(tn_ctx* ctx, const Options& options) {
  Settings out;
  out.ctx = ctx;
  out.scope = options.text("scope");
  out.max_bytes = options.integer("max_bytes", out.max_bytes);
  out.operators = options.texts("operators");
  out.keeps_shared = options.text("shared") == "keep";
  return out;
}

bool Settings::covers(Node node) const {
  std::string_view own = node.scope();
  if (scope.empty() || own == scope) return true;
  return own.size() > scope.size() && own.substr(0, scope.size()) == scope &&
         own[scope.size()] == '/';
}

Status Settings::check(tn_graph* graph) const {
  if (scope.empty() && operators.empty()) return {};
  std::vector<Node> nodes;
  collect_nodes(graph, &nodes);
  TN_CHECK(refuse_scope(scope, nodes));
  for (const std::string& name : operators)
    TN_CHECK(refuse_operator(ctx, name, nodes));
  return {};
}

bool has_bodies(tn_graph* graph) {
  std::vector<Node> nodes = Graph{graph}.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](Node node) {
    const tn_op* row = node.row();
    return !row || (row->traits & TN_OP_CONTROL) != 0;
  });
}

Result<int64_t> run_alone(const Rule& rule, tn_graph* graph, const Settings& settings) {
  TN_CHECK(Cancel(settings.cancel).check());
  Result<int64_t> own = rule.run(graph, settings);
  if (!own.ok()) return std::move(own).status().in(rule.id);
  return own;
}

Result<int64_t> run_everywhere(const Rule& rule, tn_graph* graph, const Settings& settings) {
  TN_TRY(total, run_alone(rule, graph, settings));
  for (Node node : Graph{graph}.nodes()) {
    TN_TRY(inner, run_in_bodies(rule, graph, node.id, settings));
    total += inner;
  }
  return total;
}

}  // namespace tenon::fusion
