// SPDX-License-Identifier: Apache-2.0
#include "graph/edit.hpp"

#include <algorithm>

#include "values/tensor.hpp"

using namespace tenon::host;

namespace tenon::host {

Result<std::unique_ptr<tn_edit>> begin_edit(tn_graph* graph) {
  if (graph->frozen)
    return Status(TN_FAILED_PRECONDITION,
                  "begin: this graph is read-only (a body, or a view of an edit): edit a clone and "
                  "set it in its place");
  if (graph->in_edit.exchange(true))
    return Status(TN_FAILED_PRECONDITION,
                  "begin: the graph is being edited already: commit or roll back that edit first");
  if (graph->edits >= 0x7ffffffeu) {
    graph->in_edit = false;
    return Status(TN_RESOURCE_EXHAUSTED, "begin: the graph has been edited 2147483646 times");
  }
  ++graph->edits;
  try {
    return std::make_unique<tn_edit>(graph);
  } catch (...) {
    graph->in_edit = false;
    throw;
  }
}

}  // namespace tenon::host

tn_edit::tn_edit(tn_graph* edited)
    : graph_(Ref<tn_graph>::share(edited)),
      tables_(std::make_shared<Tables>(*edited->tables)),
      view_(Ref<tn_graph>::take(new_graph(edited->ctx, tables_))),
      scope_(make_text("")) {
  view_->live_view = view_->frozen = true;
}

tn_edit::~tn_edit() {
  view_->live_view = false;
  graph_->in_edit = false;
}

// --- names ---

std::string tn_edit::free_name(Indexed names, std::string_view base) {
  const NameIndex& index = *((*tables_).*names);
  if (!index.contains(base)) return std::string(base);
  uint64_t& next = suffixes_[cat(names == &Tables::node_names ? "n" : "v", base)];
  std::string name;
  do {
    name = cat(base, "_", ++next);
  } while (index.contains(name));
  return name;
}

void tn_edit::claim(Indexed names, const Text& name, uint64_t id) {
  auto& index = (*tables_).*names;
  if (index.use_count() != 1) index = std::make_shared<NameIndex>(*index);
  index->insert_or_assign(name, id);
}

void tn_edit::unclaim(Indexed names, std::string_view name, uint64_t id) {
  auto& index = (*tables_).*names;
  if (id_of(*index, name) != id) return;
  if (index.use_count() != 1) index = std::make_shared<NameIndex>(*index);
  index->erase(name);
}

void tn_edit::rename(Indexed names, uint64_t id, Text& held, std::string_view name) {
  unclaim(names, *held, id);
  retire(std::exchange(held, make_text(name)));
  claim(names, held, id);
}

bool tn_edit::taken(std::string_view name) {
  tn_value_id holder = tables_->find_value(name);
  if (holder == 0) return false;
  if (std::find(orphans_.begin(), orphans_.end(), holder) == orphans_.end()) return true;
  unclaim(&Tables::value_names, name, holder);
  return false;
}

// --- values ---

tn_value_id tn_edit::new_value(std::string_view name, Value value) {
  Text text = value.name = make_text(name);
  tn_value_id id = tables_->values.add(std::move(value), generation());
  claim(&Tables::value_names, text, id);
  return id;
}

void tn_edit::drop_value(tn_value_id id) {
  unclaim(&Tables::value_names, *tables_->values.find(id)->name, id);
  retire(tables_->values.remove(id));
}

Result<tn_value_id> tn_edit::add_input(std::string_view name, TypeRef type) {
  if (name.empty()) return invalid("add_input: expected a name, got an empty one");
  if (taken(name))
    return Status(TN_ALREADY_EXISTS, cat("add_input: the graph has a value named ", name));
  Value value;
  value.type = std::move(type);
  value.is_input = true;
  tn_value_id id = new_value(name, std::move(value));
  tables_->inputs.push_back(id);
  return id;
}

Status tn_edit::remove_input(uint64_t i) {
  auto& inputs = tables_->inputs;
  if (i >= inputs.size())
    return {TN_OUT_OF_RANGE, cat("remove_input ", i, ": the graph has ", inputs.size())};
  tn_value_id id = inputs[i];
  const Value& value = *tables_->values.find(id);
  auto paired = [id](const auto& pair) { return pair.first == id || pair.second == id; };
  bool in_state = std::any_of(tables_->states.begin(), tables_->states.end(), paired);
  if (!value.uses.empty() || value.as_output > 0 || in_state)
    return {TN_FAILED_PRECONDITION,
            cat("remove_input ", i, ": ", *value.name, " is used: replace its uses first")};
  inputs.erase(inputs.begin() + static_cast<int64_t>(i));
  drop_value(id);
  return {};
}

Status tn_edit::add_output(std::string_view name, tn_value_id id) {
  const Value* value = tables_->values.find(id);
  if (!value) return stale_value(id);
  Text text = name.empty() ? value->name : make_text(name);
  for (const Output& other : tables_->outputs)
    if (*other.name == *text)
      return {TN_ALREADY_EXISTS, cat("add_output: the graph has an output named ", *text)};
  ++tables_->values.edit(id)->as_output;
  tables_->outputs.push_back({std::move(text), id});
  return {};
}

Status tn_edit::set_output(uint64_t i, tn_value_id id) {
  auto& outputs = tables_->outputs;
  if (i >= outputs.size())
    return {TN_OUT_OF_RANGE, cat("set_output ", i, ": the graph has ", outputs.size())};
  if (!tables_->values.find(id)) return stale_value(id);
  --tables_->values.edit(outputs[i].value)->as_output;
  ++tables_->values.edit(id)->as_output;
  outputs[i].value = id;
  return {};
}

Status tn_edit::remove_output(uint64_t i) {
  auto& outputs = tables_->outputs;
  if (i >= outputs.size())
    return {TN_OUT_OF_RANGE, cat("remove_output ", i, ": the graph has ", outputs.size())};
  --tables_->values.edit(outputs[i].value)->as_output;
  retire(outputs[i].name);
  outputs.erase(outputs.begin() + static_cast<int64_t>(i));
  return {};
}

Status tn_edit::pair_state(tn_value_id input, tn_value_id output) {
  const Value* in = tables_->values.find(input);
  if (!in) return stale_value(input);
  const Value* out = tables_->values.find(output);
  if (!out) return stale_value(output);
  if (!in->is_input)
    return invalid(cat("pair_state: expected an input of the graph, got ", *in->name));
  if (out->as_output == 0)
    return invalid(cat("pair_state: expected an output of the graph, got ", *out->name));
  for (auto [first, second] : tables_->states)
    if (first == input)
      return {TN_ALREADY_EXISTS, cat("pair_state: ", *in->name, " has a pair already")};
  tables_->states.emplace_back(input, output);
  return {};
}

Result<tn_value_id> tn_edit::add_constant(std::string_view name, tn_tensor* tensor) {
  if (!tensor) return invalid(cat("add_constant ", name, ": expected a tensor, got null"));
  Result<Ref<tn_tensor>> dense = dense_tensor(tensor);  // who reads a graph relies on it
  if (!dense) return dense.status().in(cat("add_constant ", name));
  tn_value_id* same = name.empty() && shares_ ? constant_like(*tensor) : nullptr;
  if (same && *same) return *same;
  Value value;
  auto shape = tensor->shape();
  value.type = seal(Type(tensor->dtype(), {shape.begin(), shape.end()}));
  value.constant = std::move(*dense);
  std::string_view base = name.empty() ? "constant" : name;
  std::string unique = taken(base) ? free_name(&Tables::value_names, base) : std::string(base);
  tn_value_id id = new_value(unique, std::move(value));
  tables_->constants.push_back(id);
  if (same) *same = id;
  return id;
}

// Where the constant of these numbers stands; NULL: of too many.
tn_value_id* tn_edit::constant_like(const tn_tensor& tensor) {
  constexpr uint64_t kMostBytes = 16 << 10;
  const bool is_small = tensor.bytes <= kMostBytes && tensor.dense;
  if (!is_small || tensor.dl.device.device_type != kDLCPU) return nullptr;
  std::string key = cat(tensor.dtype(), ' ');
  for (int64_t dim : tensor.shape())
    key += cat(dim, ' ');
  key.append(reinterpret_cast<const char*>(tensor.data()), tensor.bytes);
  return &small_constants_[key];
}

Status tn_edit::set_node_name(tn_node_id id, std::string_view name) {
  const Node* node = tables_->nodes.find(id);
  if (!node) return stale_node(id);
  if (*node->name == name) return {};
  if (name.empty()) return invalid(cat("set_node_name: ", *node->name, ": expected a name"));
  if (tables_->node_names->contains(name))
    return {TN_ALREADY_EXISTS, cat("set_node_name: the graph has a node named ", name)};
  rename(&Tables::node_names, id, tables_->nodes.edit(id)->name, name);
  return {};
}

Status tn_edit::set_value_name(tn_value_id id, std::string_view name) {
  const Value* value = tables_->values.find(id);
  if (!value) return stale_value(id);
  if (*value->name == name) return {};
  if (name.empty()) return invalid(cat("set_value_name: ", *value->name, ": expected a name"));
  if (taken(name))
    return {TN_ALREADY_EXISTS, cat("set_value_name: the graph has a value named ", name)};
  rename(&Tables::value_names, id, tables_->values.edit(id)->name, name);
  return {};
}

// --- notes and functions ---

Status tn_edit::set_note(uint64_t id, std::string_view key, const tn_any& value) {
  const NamedAnys* held = tables_->notes_of(id);
  if (!held) return id >> 63 ? stale_value(id) : stale_node(id);
  if (key.empty()) return invalid("set_note: expected a key, got an empty one");
  AnyRef owned;
  if (value.tag != TN_ANY_NONE) {
    TN_TRY(made, own(value, cat("note ", key)));
    owned = made;
  }
  const NamedAny* present = find(*held, key);
  if (present ? owned && *present->value == *owned : !owned) return {};
  NamedAnys& notes = id == 0    ? tables_->notes
                     : id >> 63 ? tables_->values.edit(id)->notes
                                : tables_->nodes.edit(id)->notes;
  if (AnyRef before = assign(notes, key, std::move(owned))) retire(before);
  if (id == 0 && key.starts_with(kVersionNote)) touch_all();  // other rows, other types
  // What inference notes about a value, such as the numbers that it holds, decides types behind it.
  if (inferring_ != 0 && id >> 63) touch_uses(*tables_->values.find(id));
  return {};
}

Status tn_edit::add_function(std::string_view domain,
                             std::string_view type,
                             const tn_graph* body,
                             const tn_graph* vjp) {
  if (type.empty() || !body) return invalid("add_function: expected a type and a body");
  if (tables_->function(domain, type))
    return {TN_ALREADY_EXISTS,
            cat("add_function: the graph has a function ", op_text(domain, type))};
  tables_->functions.push_back(
      {std::string(domain), std::string(type), snapshot(*body), vjp ? snapshot(*vjp) : nullptr});
  return {};
}
