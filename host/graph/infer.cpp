// SPDX-License-Identifier: Apache-2.0
// Types of one node's outputs: by the row's shape column, else its axes, else broadcasting. A call
// of a function is inferred through its body; operators without a row leave types unknown.
#include "graph/edit.hpp"
#include "graph/op_table.hpp"
#include "graph/verifier.hpp"
#include "types/infer_rules.hpp"

using namespace tenon::host;

namespace {

constexpr int kMaxCallDepth = 32;

// What inference says, with what a reader declared where it leaves something open. A declaration
// that disagrees is out of date: types were bound or inputs changed since.
TypeRef merged(const TypeRef& inferred, const TypeRef& declared) {
  if (!declared || !agree(*inferred, *declared)) return inferred;
  if (!inferred->known()) return declared;
  Type both = refine(*inferred, *declared);
  return both == *inferred ? inferred : seal(std::move(both));
}

}  // namespace

void tn_edit::touch(tn_node_id id) {
  size_t slot = Slots<Node, 0>::index(id);
  if (touched_.size() <= slot) touched_.resize(std::max(slot + 1, tables_->nodes.capacity()));
  touched_[slot] = 1;
}

void tn_edit::touch_uses(const Value& value) {
  for (const Use& use : value.uses)
    touch(use.node);
}

void tn_edit::touch_all() {
  for (tn_node_id id : tables_->order)
    touch(id);
}

void tn_edit::retype(tn_value_id id, TypeRef type) {
  const Value* value = tables_->values.find(id);
  if (value->type == type || *value->type == *type) return;
  retire(value->type);
  tables_->values.edit(id)->type = std::move(type);
  touch_uses(*value);
}

Status tn_edit::set_type(tn_value_id id, TypeRef type) {
  const Value* value = tables_->values.find(id);
  if (!value) return stale_value(id);
  if (inferring_ != 0) {
    if (value->producer != inferring_)
      return {TN_FAILED_PRECONDITION,
              cat("set_type: ", *value->name, " is no output of the node that is inferred")};
    pending_[value->out_index] = std::move(type);
    return {};
  }
  if (value->is_input) {
    retype(id, std::move(type));
    return {};
  }
  const TypeRef& fixed = value->constant ? value->type : value->inferred;
  if (!agree(*fixed, *type))
    return invalid(cat("set_type: value ", *value->name, ": expected ", type_text(*fixed), ", got ",
                       type_text(*type)));
  if (value->constant) return {};
  Value* writable = tables_->values.edit(id);
  if (writable->declared) retire(writable->declared);
  writable->declared = std::move(type);
  retype(id, merged(writable->inferred, writable->declared));
  return {};
}

Status tn_edit::infer(tn_node_id id) {
  const Node* node = tables_->nodes.find(id);
  if (!node) return stale_node(id);
  if (inferring_ != 0)
    return {TN_FAILED_PRECONDITION, cat("infer: ", node_text(*node), ": a node is being inferred")};
  Result<std::vector<TypeRef>> types = infer_types(id);
  if (!types) return types.status().in(node_text(*node));
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    tn_value_id output = node->outputs[i];
    TypeRef type = i < types->size() && (*types)[i] ? (*types)[i] : unknown_type();
    const Value* value = tables_->values.find(output);
    if (*value->inferred == *type) type = value->inferred;
    if (value->inferred != type) tables_->values.edit(output)->inferred = type;
    value = tables_->values.find(output);
    retype(output, merged(type, value->declared));
  }
  if (size_t slot = Slots<Node, 0>::index(id); slot < touched_.size()) touched_[slot] = 0;
  return {};
}

const Function* tn_edit::function(std::string_view domain, std::string_view type) const {
  for (const tn_edit* edit = this; edit; edit = edit->outer_)
    if (const Function* found = edit->tables_->function(domain, type)) return found;
  return nullptr;
}

tn_edit::Result<std::vector<TypeRef>> tn_edit::infer_types(tn_node_id id) {
  const Node& node = *tables_->nodes.find(id);
  if (const Function* called = function(node.domain, node.type)) return infer_by_body(id, *called);
  const OpRow* row = ctx()->session->ops->find(*tables_, node.domain, node.type);
  if (!row) return std::vector<TypeRef>{};
  return row->op.shape ? infer_by_shape(id, *row) : infer_by_row(id, *row);
}

tn_edit::Result<std::vector<TypeRef>> tn_edit::infer_by_shape(tn_node_id id, const OpRow& row) {
  const Node& node = *tables_->nodes.find(id);
  TN_CHECK(check_arity(row, node));
  pending_.assign(node.outputs.size(), nullptr);
  inferring_ = id;
  Status refused(row.op.shape(row.op.self, this, id));
  inferring_ = 0;
  TN_CHECK(std::move(refused));
  return std::move(pending_);
}

// Of a node's inputs; NULL: absent.
std::vector<const Type*> tn_edit::types_of(const Node& node) const {
  std::vector<const Type*> out;
  for (tn_value_id input : node.inputs) {
    const Value* value = tables_->values.find(input);
    out.push_back(value ? value->type.get() : nullptr);
  }
  return out;
}

tn_edit::Result<std::vector<TypeRef>> tn_edit::infer_by_row(tn_node_id id, const OpRow& row) {
  const Node& node = *tables_->nodes.find(id);
  TN_CHECK(check_arity(row, node));
  const std::vector<const Type*> inputs = types_of(node);
  std::vector<uint32_t> dtypes;
  for (const Type* type : inputs)
    dtypes.push_back(type ? type->dtype : TN_DTYPE_NONE);
  if (row.op.traits & TN_OP_POINTWISE) {
    uint32_t dtype = compute_dtype(inputs);
    if (row.expr) {
      TN_TRY(program, row.program(view(), node));
      TN_TRY(computed, program_dtype(*program, dtypes));
      if (computed != TN_DTYPE_NONE) dtype = computed;
    }
    TN_TRY(type, broadcast_types(inputs, dtype));
    return std::vector<TypeRef>(node.outputs.size(), seal(std::move(type)));
  }
  return row.axes ? infer_by_axes(node, row) : std::vector<TypeRef>{};
}

tn_edit::Result<std::vector<TypeRef>> tn_edit::infer_by_axes(const Node& node, const OpRow& row) {
  TN_TRY(inferred,
         axes_types(*row.axes, types_of(node), node.outputs.size(), axes_attributes(view(), node)));
  std::vector<TypeRef> types;
  for (Type& type : inferred)
    types.push_back(seal(std::move(type)));
  return types;
}

tn_edit::Result<std::vector<TypeRef>> tn_edit::infer_by_body(tn_node_id id,
                                                             const Function& called) {
  int depth = 0;
  for (const tn_edit* edit = this; edit; edit = edit->outer_)
    if (++depth > kMaxCallDepth) return invalid("functions call each other without end");
  const Node& node = *tables_->nodes.find(id);
  const auto& formal = called.body->tables->inputs;
  if (node.inputs.size() > formal.size())
    return invalid(cat("expected at most ", formal.size(), " inputs, got ", node.inputs.size()));
  auto copy = Ref<tn_graph>::take(clone(*called.body));
  copy->frozen = false;
  TN_TRY(inner, begin_edit(copy.get()));
  inner->outer_ = this;
  inner->touch_all();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* actual = tables_->values.find(node.inputs[i]);
    if (actual && actual->type->known()) inner->retype(formal[i], actual->type);
  }
  TN_CHECK(inner->infer_touched());
  std::vector<TypeRef> types;
  for (const Output& output : inner->tables().outputs)
    types.push_back(inner->tables().values.find(output.value)->type);
  if (node.outputs.size() > types.size())
    return invalid(cat("expected at most ", types.size(), " outputs, got ", node.outputs.size()));
  return types;
}
