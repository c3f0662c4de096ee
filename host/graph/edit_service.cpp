// SPDX-License-Identifier: Apache-2.0
// Service "tenon.host.graph_edit/1": checks what crosses the ABI, then calls tn_edit.
#include <algorithm>
#include <memory>

#include "graph/edit.hpp"
#include "graph/op_table.hpp"

namespace tenon::host {
namespace {

tn_status* begin(tn_graph* graph, tn_edit** out) {
  return guarded_out(out, [&] { return begin_edit(graph); });
}

const tn_graph* graph_of(tn_edit* edit) {
  return &edit->view();
}

tn_ctx* context(tn_edit* edit) {
  return edit->ctx();
}

tn_status* add_input(tn_edit* edit, tn_str name, const tn_type* type, tn_value_id* out) {
  return guarded_out(out, [&]() -> Result<tn_value_id> {
    TN_TRY(read, read_type(type, cat("add_input ", view(name))));
    return edit->add_input(view(name), read);
  });
}
tn_status* remove_input(tn_edit* edit, uint64_t i) {
  return guarded([&] { return edit->remove_input(i); });
}
tn_status* add_output(tn_edit* edit, tn_str name, tn_value_id id) {
  return guarded([&] { return edit->add_output(view(name), id); });
}
tn_status* set_output(tn_edit* edit, uint64_t i, tn_value_id id) {
  return guarded([&] { return edit->set_output(i, id); });
}
tn_status* remove_output(tn_edit* edit, uint64_t i) {
  return guarded([&] { return edit->remove_output(i); });
}
tn_status* pair_state(tn_edit* edit, tn_value_id input, tn_value_id output) {
  return guarded([&] { return edit->pair_state(input, output); });
}
tn_status* add_constant(tn_edit* edit, tn_str name, tn_tensor* tensor, tn_value_id* out) {
  return guarded_out(out, [&] { return edit->add_constant(view(name), tensor); });
}

Result<NodeSpec> read_desc(const tn_edit& edit, const tn_node_desc* desc) {
  if (!desc || desc->struct_size < sizeof(tn_node_desc))
    return invalid("add_node: expected a tn_node_desc with its struct_size set");
  NodeSpec spec;
  spec.domain = view(desc->domain);
  spec.type = view(desc->type);
  spec.name = view(desc->name);
  spec.scope = view(desc->scope);
  if (std::max({desc->n_inputs, desc->n_outputs, desc->n_attrs}) > kMostOfNode)
    return invalid(cat("add_node ", spec.type, ": expected at most ", kMostOfNode,
                       " inputs, outputs and attributes"));
  bool missing = (desc->n_inputs > 0 && !desc->inputs) ||
                 (desc->n_attrs > 0 && (!desc->attr_names || !desc->attr_values));
  if (missing) return invalid(cat("add_node ", spec.type, ": expected a list, got null"));
  spec.inputs.assign(desc->inputs, desc->inputs + desc->n_inputs);
  while (!spec.inputs.empty() && spec.inputs.back() == 0)
    spec.inputs.pop_back();
  for (uint64_t i = 0; i < desc->n_outputs; ++i)
    spec.outputs.emplace_back(desc->output_names ? view(desc->output_names[i]) : "");
  for (uint64_t i = 0; i < desc->n_attrs; ++i) {
    std::string_view name = view(desc->attr_names[i]);
    if (name.empty())
      return invalid(cat("add_node ", spec.type, ": attribute ", i, " has no name"));
    if (desc->attr_values[i].tag == TN_ANY_NONE) continue;
    TN_TRY(value, own_attribute(edit, spec.domain, spec.type, name, desc->attr_values[i]));
    if (assign(spec.attrs, name, value))
      return invalid(cat("add_node ", spec.type, ": attribute ", name, " is given twice"));
  }
  return spec;
}

tn_status* add_node(tn_edit* edit,
                    const tn_node_desc* desc,
                    tn_node_id* out,
                    tn_value_id* out_outputs) {
  tn_node_id made = 0;
  tn_status* failed = guarded_out(out ? out : &made, [&]() -> Result<tn_node_id> {
    TN_TRY(spec, read_desc(*edit, desc));
    TN_TRY(id, edit->add_node(spec));
    const auto& outputs = edit->tables().nodes.find(id)->outputs;
    if (out_outputs) std::copy(outputs.begin(), outputs.end(), out_outputs);
    return id;
  });
  if (failed && out_outputs && desc) std::fill_n(out_outputs, desc->n_outputs, 0);
  return failed;
}

tn_status* erase_node(tn_edit* edit, tn_node_id id) {
  return guarded([&] { return edit->erase_node(id); });
}
tn_status* set_input(tn_edit* edit, tn_node_id id, uint64_t i, tn_value_id value) {
  return guarded([&] { return edit->set_input(id, i, value); });
}
tn_status* set_attr(tn_edit* edit, tn_node_id id, tn_str name, tn_any value) {
  return guarded([&] { return edit->set_attr(id, view(name), value); });
}
tn_status* set_node_name(tn_edit* edit, tn_node_id id, tn_str name) {
  return guarded([&] { return edit->set_node_name(id, view(name)); });
}
tn_status* set_scope(tn_edit* edit, tn_node_id id, tn_str scope) {
  return guarded([&] { return edit->set_scope(id, view(scope)); });
}
tn_status* set_value_name(tn_edit* edit, tn_value_id id, tn_str name) {
  return guarded([&] { return edit->set_value_name(id, view(name)); });
}
tn_status* set_type(tn_edit* edit, tn_value_id id, const tn_type* type) {
  return guarded([&]() -> Status {
    TN_TRY(read, read_type(type, "set_type"));
    return edit->set_type(id, read);
  });
}
tn_status* infer(tn_edit* edit, tn_node_id id) {
  return guarded([&] { return edit->infer(id); });
}
tn_status* replace_uses(tn_edit* edit, tn_value_id from, tn_value_id to) {
  return guarded([&] { return edit->replace_uses(from, to); });
}
tn_status* set_note(tn_edit* edit, uint64_t id, tn_str key, tn_any value) {
  return guarded([&] { return edit->set_note(id, view(key), value); });
}
tn_status* splice(
    tn_edit* edit, const tn_graph* from, tn_str scope, tn_value_id* map, uint64_t n_pairs) {
  return guarded([&] { return edit->splice(*from, view(scope), map, n_pairs); });
}
tn_status* add_function(
    tn_edit* edit, tn_str domain, tn_str type, const tn_graph* body, const tn_graph* vjp) {
  return guarded([&] { return edit->add_function(view(domain), view(type), body, vjp); });
}

tn_status* commit(tn_edit* edit) {
  std::unique_ptr<tn_edit> ended(edit);
  return guarded([&] { return ended->commit(); });
}
void rollback(tn_edit* edit) {
  delete edit;
}

}  // namespace

const tn_host_graph_edit* edit_service() {
  static const tn_host_graph_edit table{
      sizeof table,   1,          begin,      graph_of,      context,       add_input,
      remove_input,   add_output, set_output, remove_output, pair_state,    add_constant,
      add_node,       erase_node, set_input,  set_attr,      set_node_name, set_scope,
      set_value_name, set_type,   infer,      replace_uses,  set_note,      splice,
      add_function,   commit,     rollback};
  return &table;
}

}  // namespace tenon::host
