// SPDX-License-Identifier: Apache-2.0
#include "examples.hpp"

#include <algorithm>
#include <optional>

#include "tenon/sdk/role/op.hpp"

#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

// Families of couplings that keep a first axis which input and output share as it is, when its size
// is the same before and after: an axis that is joined, cut or reduced has another.
bool keeps_first_axis(uint32_t family) {
  constexpr uint32_t kFamilies[] = {TN_COUPLING_SAME,     TN_COUPLING_CONCAT, TN_COUPLING_SPLIT,
                                    TN_COUPLING_PERMUTE,  TN_COUPLING_REDUCE, TN_COUPLING_VIEW,
                                    TN_COUPLING_ATTENTION};
  return std::ranges::find(kFamilies, family) != std::end(kFamilies);
}

bool names(const tn_op_columns* columns, std::string_view key) {
  for (uint64_t i = 0; columns && i < columns->n_coupling_keys; ++i)
    if (view(columns->coupling_keys[i].key) == key) return true;
  return false;
}

// The axis of an operand as the row's axes have it: which label, and which axis of its run.
struct Axis {
  uint32_t label, index;
  bool operator==(const Axis&) const = default;
};

// Of the first axes of a node's operands, inputs before outputs; nothing where it has none, or
// where the operator mixes along it.
std::optional<std::vector<std::optional<Axis>>> first_axes(Node node, const tn_axes& axes) {
  uint64_t n = 0;
  Status failed(services.columns->layout(node.graph, node.id, nullptr, 0, &n));
  if (!failed.ok()) return std::nullopt;
  std::vector<tn_axes_place> places(n);
  Status filled(services.columns->layout(node.graph, node.id, places.data(), n, &n));
  if (!filled.ok()) return std::nullopt;
  constexpr uint32_t kMixed = TN_AXES_TERM_REDUCED | TN_AXES_TERM_PRIMED | TN_AXES_TERM_GROUPED;
  auto is_mixed = [&](uint32_t label) {
    return std::any_of(axes.terms, axes.terms + axes.n_terms, [&](const tn_axes_term& term) {
      return term.label == label && (term.flags & kMixed) != 0;
    });
  };
  std::vector<std::optional<Axis>> out(node.n_inputs() + node.n_outputs());
  for (const tn_axes_place& place : places) {
    const tn_axes_term& term = axes.terms[place.term];
    bool is_first = place.axis == 0 && place.count > 0 && place.operand < out.size();
    if (is_first && term.label != TN_AXES_NO_LABEL && !is_mixed(term.label))
      out[place.operand] = Axis{term.label, place.first};
  }
  return out;
}

}  // namespace

bool Examples::leads(const Type& type) const {
  if (!type.ranked || type.rank() < 1 || type.symbols.empty()) return false;
  return type.dims[0] < 0 && type.symbols[0] == symbol_ &&
         std::ranges::count(type.symbols, symbol_) == 1;
}

std::string Examples::why_mixed(Node node) const {
  const tn_op* row = node.row();
  if (!row) return "no loaded plugin brings this operator";
  if (row->traits & TN_OP_MIXES_BATCH) return "it mixes the examples of a batch";
  for (Value output : node.outputs())
    if (output && !leads(output.type()))
      return cat(output.name(), " does not have the axis ", symbol_, " in front alone");
  if (row->traits & TN_OP_POINTWISE) {
    for (Value input : node.inputs())
      if (input && has_examples(input) && input.type().rank() != node.output().type().rank())
        return "examples of its inputs meet other axes";
    return "";
  }
  return is_alone(node, row) ? "" : "nothing says that it treats examples alone";
}

bool Examples::is_alone(Node node, const tn_op* row) const {
  const tn_op_columns* columns = services.columns->columns(row);
  const uint32_t family = columns ? columns->coupling : TN_COUPLING_NONE;
  if (family == TN_COUPLING_MATRICES) return is_product(node, *columns);
  if (by_axes(node, row)) return true;
  if (names(columns, "statistics")) return false;  // the axes have said what it mixes
  return (row->traits & TN_OP_VIEW) != 0 || keeps_first_axis(family);
}

// Rows of the first matrix alone are examples.
bool Examples::is_product(Node node, const tn_op_columns& columns) const {
  bool has_rows = false;
  for (uint64_t i = 0; i < columns.n_coupling_keys; ++i) {
    const tn_coupling_key& key = columns.coupling_keys[i];
    if (view(key.key) == "transpose_a" && node.attr_int(view(key.attribute)) != 0) return false;
    bool is_given = key.input >= 0 && has_examples(node.input(static_cast<uint64_t>(key.input)));
    if (view(key.key) == "a") has_rows = is_given;
    if (view(key.key) == "b" && is_given) return false;
  }
  return has_rows;
}

bool Examples::by_axes(Node node, const tn_op* row) const {
  const tn_axes* axes = nullptr;
  if (row->axes.len == 0 || !Status(services.op->axes(row, &axes)).ok()) return false;
  auto first = first_axes(node, *axes);
  if (!first) return false;
  std::optional<Axis> common;
  for (size_t i = 0; i < first->size(); ++i) {
    bool is_input = i < node.n_inputs();
    Value value = is_input ? node.input(i) : node.output(i - node.n_inputs());
    if (!value || (is_input && !has_examples(value))) continue;
    const std::optional<Axis>& axis = (*first)[i];
    if (!axis || (common && *common != *axis)) return false;
    common = axis;
  }
  return true;
}

Examples Examples::behind(Graph graph, Value result) {
  Examples out;
  Type type = result.type();
  if (type.ranked && type.rank() > 0 && !type.symbols.empty()) out.symbol_ = type.symbols[0];
  if (out.symbol_.empty()) {
    out.why_ = "the result has no symbol as its first size";
    return out;
  }
  for (Value input : graph.inputs()) {
    if (out.leads(input.type())) out.values_.insert(input.id);
    std::vector<std::string> symbols = input.type().symbols;
    if (!out.leads(input.type()) && std::ranges::count(symbols, out.symbol_) > 0)
      out.why_ = cat("input ", input.name(), " has the axis ", out.symbol_, " elsewhere");
  }
  for (Node node : nodes_behind({result})) {
    if (!out.why_.empty()) return out;
    const tn_op* row = node.row();
    bool reads_data = !row || (row->traits & TN_OP_READS_SHAPE) == 0;
    std::vector<Value> inputs = node.inputs();
    if (!reads_data ||
        std::ranges::none_of(inputs, [&](Value v) { return v && out.has_examples(v); }))
      continue;
    std::string why = out.why_mixed(node);
    if (!why.empty()) out.why_ = cat(described(node), ": ", why);
    for (Value output : node.outputs())
      if (output) out.values_.insert(output.id);
  }
  return out;
}

}  // namespace tenon::autodiff
