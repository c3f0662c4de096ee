// SPDX-License-Identifier: Apache-2.0
// Service "tenon.host.graph/1": the queries, each a few lines over Tables.
#include <iterator>

#include "graph/graph.hpp"
#include "graph/verifier.hpp"
#include "services/rooms.hpp"

namespace tenon::host {
namespace {

// No graph holds nothing: the handle of an input that a node leaves out comes without one.
const Node* node_of(const tn_graph* graph, tn_node_id id) {
  return graph ? graph->tables->nodes.find(id) : nullptr;
}
const Value* value_of(const tn_graph* graph, tn_value_id id) {
  return graph ? graph->tables->values.find(id) : nullptr;
}

tn_status* create(tn_ctx* ctx, tn_graph** out) {
  return guarded_out(
      out, [&]() -> Result<tn_graph*> { return new_graph(ctx, std::make_shared<const Tables>()); });
}

tn_status* clone_graph(const tn_graph* graph, tn_graph** out) {
  return guarded_out(out, [&]() -> Result<tn_graph*> { return clone(*graph); });
}

uint64_t count(const tn_graph* graph, uint32_t which) {
  const Tables& t = *graph->tables;
  const size_t counts[] = {t.inputs.size(),    t.outputs.size(), t.states.size(),
                           t.functions.size(), t.order.size(),   t.constants.size()};
  return which < std::size(counts) ? counts[which] : 0;
}

tn_value_id value_at(const tn_graph* graph, uint32_t which, uint64_t i, uint32_t side) {
  const Tables& t = *graph->tables;
  if (which != TN_LIST_STATES && side != 0) return 0;
  if (which == TN_LIST_INPUTS) return i < t.inputs.size() ? t.inputs[i] : 0;
  if (which == TN_LIST_OUTPUTS) return i < t.outputs.size() ? t.outputs[i].value : 0;
  if (which == TN_LIST_CONSTANTS) return i < t.constants.size() ? t.constants[i] : 0;
  if (which != TN_LIST_STATES || i >= t.states.size() || side > 1) return 0;
  return side == 0 ? t.states[i].first : t.states[i].second;
}

tn_node_id node_at(const tn_graph* graph, uint64_t i) {
  return i < graph->tables->order.size() ? graph->tables->order[i] : 0;
}

tn_str value_name(const tn_graph* graph, tn_value_id id) {
  const Value* value = value_of(graph, id);
  return value ? str(*value->name) : tn_str{};
}

tn_str io_name(const tn_graph* graph, uint32_t which, uint64_t i) {
  const Tables& t = *graph->tables;
  if (which == TN_LIST_OUTPUTS) return i < t.outputs.size() ? str(*t.outputs[i].name) : tn_str{};
  return which == TN_LIST_INPUTS ? value_name(graph, value_at(graph, which, i, 0)) : tn_str{};
}

tn_value_id find_value(const tn_graph* graph, tn_str name) {
  return graph->tables->find_value(view(name));
}

tn_status* node_op(const tn_graph* graph, tn_node_id id, tn_str* domain, tn_str* type) {
  *domain = *type = {};
  return guarded([&]() -> Status {
    const Node* node = node_of(graph, id);
    if (!node) return stale_node(id);
    *domain = str(node->domain);
    *type = str(node->type);
    return {};
  });
}

tn_str node_name(const tn_graph* graph, tn_node_id id) {
  const Node* node = node_of(graph, id);
  return node ? str(*node->name) : tn_str{};
}

tn_str node_scope(const tn_graph* graph, tn_node_id id) {
  const Node* node = node_of(graph, id);
  return node ? str(*node->scope) : tn_str{};
}

const std::vector<tn_value_id>* io_list(const tn_graph* graph, tn_node_id id, uint32_t which) {
  const Node* node = node_of(graph, id);
  if (!node || which > TN_LIST_OUTPUTS) return nullptr;
  return which == TN_LIST_INPUTS ? &node->inputs : &node->outputs;
}

uint64_t io_count(const tn_graph* graph, tn_node_id id, uint32_t which) {
  const auto* list = io_list(graph, id, which);
  return list ? list->size() : 0;
}

tn_value_id io_at(const tn_graph* graph, tn_node_id id, uint32_t which, uint64_t i) {
  const auto* list = io_list(graph, id, which);
  return list && i < list->size() ? (*list)[i] : 0;
}

uint64_t attr_count(const tn_graph* graph, tn_node_id id) {
  const Node* node = node_of(graph, id);
  return node ? node->attrs.size() : 0;
}

tn_str attr_name(const tn_graph* graph, tn_node_id id, uint64_t i) {
  const Node* node = node_of(graph, id);
  return node && i < node->attrs.size() ? str(node->attrs[i].name) : tn_str{};
}

tn_status* attr(const tn_graph* graph, tn_node_id id, tn_str name, tn_any* out) {
  *out = {};
  return guarded([&]() -> Status {
    const Node* node = node_of(graph, id);
    if (!node) return stale_node(id);
    *out = attribute(*graph, *node, view(name));
    return {};
  });
}

tn_status* value_type(const tn_graph* graph, tn_value_id id, tn_type* out) {
  return guarded([&]() -> Status {
    const Value* value = value_of(graph, id);
    *out = (value ? value->type : unknown_type())->view();
    return value ? Status() : stale_value(id);
  });
}

tn_tensor* constant(const tn_graph* graph, tn_value_id id) {
  const Value* value = value_of(graph, id);
  return value ? value->constant.get() : nullptr;
}

tn_node_id producer(const tn_graph* graph, tn_value_id id, uint64_t* out_index) {
  const Value* value = value_of(graph, id);
  if (out_index) *out_index = value ? value->out_index : 0;
  return value ? value->producer : 0;
}

uint64_t consumer_count(const tn_graph* graph, tn_value_id id) {
  const Value* value = value_of(graph, id);
  return value ? value->uses.size() : 0;
}

tn_node_id consumer_at(const tn_graph* graph, tn_value_id id, uint64_t i, uint64_t* out_input) {
  const Value* value = value_of(graph, id);
  bool there = value && i < value->uses.size();
  if (out_input) *out_input = there ? value->uses[i].input : 0;
  return there ? value->uses[i].node : 0;
}

int32_t is_output(const tn_graph* graph, tn_value_id id) {
  const Value* value = value_of(graph, id);
  return value && value->as_output > 0;
}

tn_status* note(const tn_graph* graph, uint64_t id, tn_str key, tn_any* out) {
  *out = {};
  return guarded([&]() -> Status {
    const NamedAnys* notes = graph->tables->notes_of(id);
    if (!notes) return id >> 63 ? stale_value(id) : stale_node(id);
    if (const NamedAny* found = find(*notes, view(key))) *out = found->value->get();
    return {};
  });
}

uint64_t note_count(const tn_graph* graph, uint64_t id) {
  const NamedAnys* notes = graph->tables->notes_of(id);
  return notes ? notes->size() : 0;
}

tn_str note_key(const tn_graph* graph, uint64_t id, uint64_t i) {
  const NamedAnys* notes = graph->tables->notes_of(id);
  return notes && i < notes->size() ? str((*notes)[i].name) : tn_str{};
}

tn_status* function_at(const tn_graph* graph,
                       uint64_t i,
                       tn_str* domain,
                       tn_str* type,
                       const tn_graph** body,
                       const tn_graph** vjp) {
  *domain = *type = {};
  *body = *vjp = nullptr;
  return guarded([&]() -> Status {
    const auto& functions = graph->tables->functions;
    if (i >= functions.size())
      return {TN_OUT_OF_RANGE, cat("function ", i, ": the graph has ", functions.size())};
    *domain = str(functions[i].domain);
    *type = str(functions[i].type);
    *body = functions[i].body.get();
    *vjp = functions[i].vjp.get();
    return {};
  });
}

Status no_text() {
  return {TN_UNIMPLEMENTED, "this host is built without the text form of graphs"};
}

tn_status* print(const tn_graph* graph, uint32_t flags, const tn_sink* sink) {
  return guarded([&] {
    if (!rooms().print) return no_text();
    return write(sink, rooms().print(*graph, flags & TN_PRINT_DATA));
  });
}

tn_status* parse(tn_ctx* ctx, tn_str text, tn_graph** out) {
  return guarded_out(out, [&]() -> Result<tn_graph*> {
    if (!rooms().parse) return no_text();
    return rooms().parse(ctx, view(text));
  });
}

tn_status* bind_inputs(const tn_graph* graph,
                       const tn_type* const* inputs,
                       uint64_t n,
                       tn_graph** out) {
  return guarded_out(out, [&]() -> Result<tn_graph*> {
    const auto& ours = graph->tables->inputs;
    if (n != ours.size())
      return invalid(cat("bind: expected ", ours.size(), " types, one per input, got ", n));
    std::vector<TypeRef> types(n);
    for (uint64_t i = 0; i < n; ++i) {
      if (!inputs[i]) continue;
      const Value& value = *graph->tables->values.find(ours[i]);
      TN_TRY(type, read_type(inputs[i], cat("bind: input ", *value.name)));
      types[i] = type;
    }
    return bind_types(*graph, types);
  });
}

tn_status* extract_nodes(const tn_graph* graph,
                         const tn_node_id* nodes,
                         uint64_t n,
                         tn_graph** out) {
  return guarded_out(out, [&] { return extract(*graph, nodes, n); });
}

tn_ctx* context_of(const tn_graph* graph) {
  return graph->ctx;
}

tn_status* verify_graph(const tn_graph* graph) {
  return guarded([&] { return verify(*graph); });
}

}  // namespace

const tn_host_graph* graph_service() {
  static const tn_host_graph table{
      sizeof table, 1,          create,      clone_graph,   retain_object, release_object,
      count,        value_at,   node_at,     io_name,       find_value,    node_op,
      node_name,    node_scope, io_count,    io_at,         attr_count,    attr_name,
      attr,         value_type, value_name,  constant,      producer,      consumer_count,
      consumer_at,  is_output,  note,        note_count,    note_key,      function_at,
      print,        parse,      bind_inputs, extract_nodes, verify_graph,  context_of};
  return &table;
}

}  // namespace tenon::host
