// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.hpp"

#include "graph/op_table.hpp"

namespace tenon::host {

const Function* Tables::function(std::string_view domain, std::string_view type) const {
  for (const Function& candidate : functions)
    if (candidate.type == type && candidate.domain == domain) return &candidate;
  return nullptr;
}

tn_value_id Tables::find_value(std::string_view name) const {
  return id_of(*value_names, name);
}

const NamedAnys* Tables::notes_of(uint64_t id) const {
  if (id == 0) return &notes;
  if (const Node* node = nodes.find(id)) return &node->notes;
  const Value* value = values.find(id);
  return value ? &value->notes : nullptr;
}

namespace {

Status stale(std::string_view kind, uint64_t id) {
  return invalid(cat(kind, " id ", id, ": expected one of this graph, got ",
                     id == 0 ? "none" : "a stale or foreign one (erased, or of another graph)"));
}

}  // namespace

Status stale_node(tn_node_id id) {
  return stale("node", id);
}
Status stale_value(tn_value_id id) {
  return stale("value", id);
}

std::string op_text(std::string_view domain, std::string_view type) {
  return domain.empty() ? std::string(type) : cat(domain, ":", type);
}

std::string node_text(const Node& node) {
  return cat("node ", *node.name, " (", op_text(node.domain, node.type), ")");
}

tn_graph* new_graph(tn_ctx* ctx, std::shared_ptr<const Tables> tables) {
  return new tn_graph(ctx, std::move(tables));
}

tn_graph* clone(const tn_graph& graph) {
  auto tables = graph.live_view ? std::make_shared<const Tables>(*graph.tables) : graph.tables;
  tn_graph* copy = new_graph(graph.ctx, std::move(tables));
  copy->edits = graph.edits;
  return copy;
}

tn_graph* without_constants(const tn_graph& graph) {
  auto tables = std::make_shared<Tables>(*graph.tables);
  for (tn_value_id id : tables->constants)
    tables->values.edit(id)->constant = {};
  return new_graph(graph.ctx, std::move(tables));
}

std::shared_ptr<tn_graph> snapshot(const tn_graph& graph) {
  tn_graph* copy = clone(graph);
  copy->frozen = true;
  return {copy, [](tn_graph* held) { held->release(); }};
}

tn_any attribute(const tn_graph& graph, const Node& node, std::string_view name) {
  if (const NamedAny* own = find(node.attrs, name)) return own->value->get();
  if (graph.tables->function(node.domain, node.type)) return {};
  const OpRow* row = graph.ctx->session->ops->find(*graph.tables, node.domain, node.type);
  const AttrSpec* spec = row ? row->attribute(name) : nullptr;
  return spec && spec->fallback ? spec->fallback->get() : tn_any{};
}

}  // namespace tenon::host
