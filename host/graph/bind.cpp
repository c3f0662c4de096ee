// SPDX-License-Identifier: Apache-2.0
// Binding the inputs of a graph to types: symbols get numbers, all types are inferred again.
#include <map>
#include <memory>
#include <string>

#include "graph/edit.hpp"

using namespace tenon::host;

namespace {

TypeRef element_type_of(const Type& tensor) {
  Type out;
  out.dtype = tensor.dtype;
  return seal(std::move(out));
}

}  // namespace

void tn_edit::substitute_declared(const SymbolValue& value) {
  for (tn_node_id id : tables_->order) {
    for (tn_value_id output : tables_->nodes.find(id)->outputs) {
      const TypeRef& declared = tables_->values.find(output)->declared;
      TypeRef bound = substitute(declared, value);
      if (bound != declared) tables_->values.edit(output)->declared = bound;
    }
  }
}

void tn_edit::forget_declared_sizes() {
  for (tn_node_id id : tables_->order) {
    for (tn_value_id output : tables_->nodes.find(id)->outputs) {
      const Value* value = tables_->values.find(output);
      if (!value || !value->declared || value->declared->kind != TN_KIND_TENSOR) continue;
      tables_->values.edit(output)->declared = element_type_of(*value->declared);
      touch(id);
    }
  }
}

void tn_edit::forget_input_sizes() {
  for (tn_value_id input : tables_->inputs) {
    const TypeRef type = tables_->values.find(input)->type;
    if (type->kind == TN_KIND_TENSOR) retype(input, element_type_of(*type));
  }
}

namespace tenon::host {
namespace {

using Symbols = std::map<std::string, int64_t, std::less<>>;

SymbolValue lookup(const Symbols& symbols) {
  return [&symbols](std::string_view name) -> std::optional<int64_t> {
    auto at = symbols.find(name);
    return at == symbols.end() ? std::nullopt : std::optional<int64_t>(at->second);
  };
}

bool is_name(std::string_view symbol) {
  return symbol.find_first_of("+-*/()") == symbol.npos;
}

// One round collects what names are bound to; the next checks the expressions over them, and takes
// one that has no value, as "seq-len" is spelled, for a name too.
Status match(const Value& input, const Type& given, bool names, Symbols& symbols) {
  const Type& formal = *input.type;
  if (formal.rank == TN_RANK_UNKNOWN || formal.rank != given.rank) return {};
  for (uint32_t i = 0; i < formal.rank; ++i) {
    std::string_view symbol = formal.symbol(i);
    int64_t size = given.dims[i];
    if (symbol.empty() || size < 0 || is_name(symbol) != names) continue;
    std::optional<int64_t> before = evaluate_symbol(symbol, lookup(symbols));
    if (before && *before != size)
      return invalid(cat("bind: input ", *input.name, ": dimension ", i, ": ", symbol, " is ",
                         *before, " elsewhere, got ", size));
    if (!before) symbols.emplace(symbol, size);
  }
  return {};
}

}  // namespace

Result<tn_graph*> bind_types(const tn_graph& graph, const std::vector<TypeRef>& inputs) {
  const Tables& t = *graph.tables;
  Symbols symbols;
  for (bool names : {true, false})
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i]) TN_CHECK(match(*t.values.find(t.inputs[i]), *inputs[i], names, symbols));
  auto out = Ref<tn_graph>::take(clone(graph));
  TN_TRY(edit, begin_edit(out.get()));
  for (size_t i = 0; i < t.inputs.size(); ++i) {
    const TypeRef& type = inputs[i] ? inputs[i] : t.values.find(t.inputs[i])->type;
    edit->retype(t.inputs[i], substitute(type, lookup(symbols)));
  }
  edit->substitute_declared(lookup(symbols));
  edit->touch_all();
  TN_CHECK(edit->commit());
  edit.reset();
  return out.release();
}

}  // namespace tenon::host
