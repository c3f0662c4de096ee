// SPDX-License-Identifier: Apache-2.0
#include "examples.hpp"

#include <algorithm>
#include <optional>

#include "tenon/sdk/coupling.hpp"
#include "tenon/sdk/role/op.hpp"

#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

// Families of couplings that keep a first axis which input and output share as it is, when its size
// is the same before and after: an axis that is joined or cut has another.
bool keeps_first_axis(uint32_t family) {
  constexpr uint32_t kFamilies[] = {TN_COUPLING_SAME, TN_COUPLING_CONCAT, TN_COUPLING_SPLIT,
                                    TN_COUPLING_VIEW, TN_COUPLING_ATTENTION};
  return std::ranges::find(kFamilies, family) != std::end(kFamilies);
}

bool permutes_behind_first(const Stated& stated) {
  auto order = stated.ints("perm");
  return order && !order->empty() && order->front() == 0;
}

bool reduces_behind_first(const Stated& stated, size_t rank) {
  auto axes = stated.ints("axes");
  if (!axes || axes->empty()) return stated.integer("noop", 0) != 0;
  return std::ranges::none_of(
      *axes, [&](int64_t axis) { return axis == 0 || axis == -static_cast<int64_t>(rank); });
}

// Of the first axes of a node's operands, inputs before outputs; nothing where it has none, or
// where the operator mixes along it.
std::optional<FirstAxes> first_axes(Node node, const tn_op* row) {
  const tn_axes* found = nullptr;
  if (row->axes.len == 0 || !Status(services.op->axes(row, &found)).ok()) return std::nullopt;
  const tn_axes& axes = *found;
  std::optional<std::vector<tn_axes_place>> places = axes_places(node);
  if (!places) return std::nullopt;
  constexpr uint32_t kMixed = TN_AXES_TERM_REDUCED | TN_AXES_TERM_PRIMED | TN_AXES_TERM_GROUPED;
  auto is_mixed = [&](uint32_t label) {
    return std::any_of(axes.terms, axes.terms + axes.n_terms, [&](const tn_axes_term& term) {
      return term.label == label && (term.flags & kMixed) != 0;
    });
  };
  FirstAxes out(node.n_inputs() + node.n_outputs());
  for (const tn_axes_place& place : *places) {
    const tn_axes_term& term = axes.terms[place.term];
    bool is_first = place.axis == 0 && place.count > 0 && place.operand < out.size();
    if (is_first && term.label != TN_AXES_NO_LABEL && !is_mixed(term.label))
      out[place.operand] = Axis{term.label, place.first};
  }
  return out;
}

}  // namespace

bool Examples::reads(Node node) const {
  std::vector<Value> inputs = node.inputs();
  Stated stated(node);  // of `same` that normalizes nothing only input 0 is read as numbers
  const bool normalizes = stated.names("statistics") || stated.names("groups");
  if (stated.family() == TN_COUPLING_SAME && !normalizes) inputs.resize(1);
  return std::ranges::any_of(inputs, [&](Value v) { return v && has_examples(v); });
}

Value Examples::count(Builder& b) const {
  return size_ >= 0 ? b.ints({size_}) : b.op("Shape", {first_}, {{"start", 0}, {"end", 1}});
}

Value Examples::zeros(Builder& b, uint32_t dtype) const {
  return b.op("Expand", {b.number(0, dtype), count(b)});
}

bool Examples::leads(const Type& type) const {
  if (!type.ranked || type.rank() < 1) return false;
  if (size_ >= 0) return type.dims[0] == size_;
  if (type.symbols.empty()) return false;
  return type.dims[0] < 0 && type.symbols[0] == symbol_ &&
         std::ranges::count(type.symbols, symbol_) == 1;
}

std::string Examples::why_mixed(Node node) const {
  const tn_op* row = node.row();
  if (!row) return "no loaded plugin brings this operator";
  if (size_ == 1) return "";
  if (row->traits & TN_OP_MIXES_BATCH) return "it mixes the examples of a batch";
  for (Value output : node.outputs())
    if (output && !leads(output.type()))
      return cat(output.name(), " does not have the axis of examples in front alone");
  if (row->traits & TN_OP_POINTWISE) {
    for (Value input : node.inputs())
      if (input && has_examples(input) && input.type().rank() != node.output().type().rank())
        return "examples of its inputs meet other axes";
    return "";
  }
  return is_alone(node, row) ? "" : "nothing says that it treats examples alone";
}

bool Examples::is_alone(Node node, const tn_op* row) const {
  Stated stated(node);
  const uint32_t family = stated.family();
  if (family == TN_COUPLING_MATRICES) return is_product(stated);
  if (auto first = first_axes(node, row); first && axis_of(node, *first)) return true;
  if (stated.names("statistics") || stated.names("groups"))
    return false;                           // the axes have said what it mixes
  if (stated.names("value")) return false;  // input 0 is a size
  if (family == TN_COUPLING_PERMUTE) return permutes_behind_first(stated);
  if (family == TN_COUPLING_REDUCE)
    return reduces_behind_first(stated, node.input(0).type().rank());
  return (row->traits & TN_OP_VIEW) != 0 || keeps_first_axis(family);
}

// Rows of the first matrix alone are examples.
bool Examples::is_product(const Stated& stated) const {
  Value a = stated.input("a"), b = stated.input("b");
  return stated.integer("transpose_a", 0) == 0 && a && has_examples(a) && !(b && has_examples(b));
}

// The axis of examples as the row's axes have it; nothing where they do not say that it is one.
std::optional<Axis> Examples::axis_of(Node node, const FirstAxes& first) const {
  std::optional<Axis> common;
  for (size_t i = 0; i < first.size(); ++i) {
    bool is_input = i < node.n_inputs();
    Value value = is_input ? node.input(i) : node.output(i - node.n_inputs());
    if (!value || (is_input && !has_examples(value))) continue;
    if (!first[i] || (common && *common != *first[i])) return std::nullopt;
    common = first[i];
  }
  return common;
}

bool Examples::is_each(Node node, uint64_t input) const {
  Type type = node.input(input).type();
  const tn_op* row = node.row();
  if (size_ == 1 || !row || !leads(type)) return false;
  if (row->traits & TN_OP_POINTWISE) return type.rank() == node.output().type().rank();
  Stated stated(node);
  if (stated.family() == TN_COUPLING_MATRICES) return !(stated.input("b") == node.input(input));
  if (auto first = first_axes(node, row))
    if (auto axis = axis_of(node, *first)) return (*first)[input] == axis;
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
  out.first_ = result;
  for (Value input : graph.inputs()) {
    if (out.leads(input.type())) {
      out.values_.insert(input.id);
      out.first_ = input;
    }
    std::vector<std::string> symbols = input.type().symbols;
    if (!out.leads(input.type()) && std::ranges::count(symbols, out.symbol_) > 0)
      out.why_ = cat("input ", input.name(), " has the axis ", out.symbol_, " elsewhere");
  }
  if (out.why_.empty()) out.follow(nodes_behind({result}), {});
  return out;
}

Examples Examples::behind_loss(Graph graph,
                               Value loss,
                               const std::vector<Value>& parameters,
                               const std::vector<std::string>& names) {
  Examples out;
  std::vector<Value> states = graph.list(TN_LIST_STATES);
  auto is_data = [&](Value input) {
    Type type = input.type();
    const bool is_meant = names.empty() || std::ranges::find(names, input.name()) != names.end();
    return is_meant && type.ranked && type.rank() > 0 &&
           std::ranges::find(states, input) == states.end() &&
           std::ranges::find(parameters, input) == parameters.end();
  };
  for (Value input : graph.inputs()) {
    if (!is_data(input)) continue;
    Type type = input.type();
    if (!out.first_) {
      out.first_ = input;
      out.size_ = type.dims[0];
      if (out.size_ < 0 && !type.symbols.empty()) out.symbol_ = type.symbols[0];
    }
    if (out.leads(type)) out.values_.insert(input.id);
  }
  if (out.values_.empty()) {
    out.why_ = "expected an input whose first axis is that of examples, got none";
    return out;
  }
  std::vector<Node> nodes = nodes_behind({loss});
  out.follow(nodes, depending(nodes, parameters));
  return out;
}

// Nodes in order. `active`: values that parameters decide; empty where nothing may be joined.
void Examples::follow(const std::vector<Node>& nodes, const Active& active) {
  for (Node node : nodes)
    nodes_.insert(node.id);
  for (Node node : nodes) {
    if (!why_.empty()) return;
    const tn_op* row = node.row();
    if ((row && (row->traits & TN_OP_READS_SHAPE) != 0) || joins(node, active) || !reads(node))
      continue;
    std::string why = why_mixed(node);
    if (!why.empty()) why_ = cat(described(node), ": ", why);
    for (Value output : node.outputs())
      if (output) values_.insert(output.id);
  }
}

// Its results have no axis of examples: from there on examples are one.
bool Examples::joins(Node node, const Active& active) {
  if (active.empty()) return false;
  std::vector<Value> inputs = node.inputs(), outputs = node.outputs();
  bool is_joined = std::ranges::any_of(inputs, [&](Value v) { return v && joined_.count(v.id); });
  if (!is_joined && !reads(node)) return false;
  bool leads_any = std::ranges::any_of(outputs, [&](Value v) { return v && leads(v.type()); });
  if (leads_any && (size_ != 1 || reads(node))) {
    if (is_joined && size_ != 1)
      why_ = cat(described(node), ": it gives each example what is made of all of them");
    return is_joined && size_ != 1;
  }
  for (Value output : outputs)
    if (output && active.count(output.id)) joined_.insert(output.id);
  return true;
}

}  // namespace tenon::autodiff
