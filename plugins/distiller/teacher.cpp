// SPDX-License-Identifier: Apache-2.0
#include "teacher.hpp"

#include <algorithm>

#include "tenon/sdk/original.hpp"

namespace tenon::distiller {
namespace {

constexpr size_t kNamesListed = 12;

// The first names of a long list, and how many more there are.
std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kNamesListed); ++i)
    out += cat(i ? ", " : "", names[i]);
  if (names.size() > kNamesListed) out += cat(" and ", names.size() - kNamesListed, " more");
  return out.empty() ? "none" : out;
}

// What the student reads under this name; else its only input for the teacher's only input.
Result<Value> fed_by(const Objective& objective, std::string_view name, size_t n_inputs) {
  std::vector<std::string> names;
  for (Value v : objective.inputs) {
    if (v.name() == name) return v;
    names.emplace_back(v.name());
  }
  if (n_inputs == 1 && objective.inputs.size() == 1) return objective.inputs[0];
  return invalid(cat("the teacher's input ", name,
                     ": expected the name of an input of the student (", listed(names), ")"));
}

Status check_input(Value ours, Value theirs) {
  Type a = ours.type(), b = theirs.type();
  if (a.dtype == b.dtype && may_equal(a, b)) return {};
  return invalid(cat("the teacher's input ", theirs.name(), ": expected ", type_text(a),
                     ", which the student reads, got ", type_text(b)));
}

// A copy of the graph with these values as its outputs and nothing that they do not need.
Result<OwnedGraph> reduced(Graph graph, const std::vector<Value>& wanted) {
  TN_TRY(clone, OwnedGraph::copy_of(graph.raw));
  TN_TRY(edit, Edit::begin(clone.get()));
  for (uint64_t i = edit.graph().outputs().size(); i-- > 0;)
    TN_CHECK(services.edit->remove_output(edit.raw, i));
  for (size_t i = 0; i < wanted.size(); ++i)
    TN_CHECK(edit.output(cat("wanted", i), edit.value(wanted[i].id)));
  TN_CHECK(erase_unused(edit));
  TN_CHECK(edit.commit());
  return Result<OwnedGraph>(std::move(clone));
}

}  // namespace

bool may_equal(const Type& a, const Type& b) {
  if (!a.ranked || !b.ranked) return true;
  if (a.rank() != b.rank()) return false;
  for (size_t i = 0; i < a.rank(); ++i)
    if (a.dims[i] >= 0 && b.dims[i] >= 0 && a.dims[i] != b.dims[i]) return false;
  return true;
}

Value scores_of(Value answer) {
  Node last = answer.producer();
  return last && (last.is("Softmax") || last.is("LogSoftmax")) ? last.input(0) : answer;
}

Result<Value> named_value(Graph graph, const std::string& name, std::string_view whose) {
  Value found = graph.find(name);
  if (found && found.producer() && is_float(found.dtype())) return found;
  std::vector<std::string> names;
  for (Node node : graph.nodes())
    for (Value v : node.outputs())
      if (v && is_float(v.dtype())) names.emplace_back(v.name());
  return invalid(cat("option features: expected a float value that a node of ", whose, " makes (",
                     listed(names), "), got '", name, "'"));
}

Result<Teacher> Teacher::share(const tn_graph* raw, std::string_view whose) {
  Teacher out;
  services.graph->retain(const_cast<tn_graph*>(raw));
  out.graph_ = OwnedGraph::take(const_cast<tn_graph*>(raw));
  if (!out.view().list(TN_LIST_STATES).empty())
    return invalid(cat(whose, ": expected a model without state"));
  if (out.view().outputs().empty()) return invalid(cat(whose, ": the model has no outputs"));
  return Result<Teacher>(std::move(out));
}

Result<Teacher> Teacher::from(const Options& options) {
  tn_any given = options.get("teacher");
  if (given.tag != TN_ANY_GRAPH) return Teacher();
  return share(static_cast<const tn_graph*>(given.v.p), "option teacher");
}

Result<Teacher> Teacher::original(Graph student) {
  Graph found = original_of(student);
  if (!found.raw)
    return invalid(
        "option teacher: expected a model to learn from, got none, and the student has no "
        "original: "
        "it was not made smaller here by pruner, decomposer or quantizer.qat");
  return share(found.raw, "the original of the student");
}

Result<Value> Teacher::output(const std::string& name) const {
  std::vector<Value> outputs = view().outputs();
  if (name.empty()) return outputs[0];
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs.size(); ++i) {
    names.emplace_back(view().output_name(i));
    if (names.back() == name) return outputs[i];
  }
  return invalid(
      cat("option teacher_output: expected one of ", listed(names), ", got '", name, "'"));
}

Result<Value> Teacher::value(const std::string& name) const {
  return named_value(view(), name, "the teacher");
}

Result<std::vector<Value>> Teacher::join(EditView edit,
                                         const Objective& objective,
                                         const std::vector<Value>& wanted) const {
  TN_TRY(graph, reduced(view(), wanted));
  std::vector<Value> inputs = graph.view().inputs();
  std::vector<tn_value_id> map;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TN_TRY(ours, fed_by(objective, graph.view().input_name(i), inputs.size()));
    TN_CHECK(check_input(ours, inputs[i]));
    map.insert(map.end(), {inputs[i].id, ours.id});
  }
  for (Value v : wanted)
    if (std::find(map.begin(), map.end(), v.id) == map.end()) map.insert(map.end(), {v.id, 0});
  TN_CHECK(Status(services.edit->splice(edit.raw, graph.get(), str("teacher"), map.data(),
                                        map.size() / 2))
               .in("the teacher"));
  std::vector<Value> out;
  for (Value v : wanted) {
    std::string name = cat("teacher/", v.name());
    size_t at = 0;
    while (map[at] != v.id)
      at += 2;
    TN_TRY(held, edit.add({.type = "StopGradient",
                           .inputs = {edit.value(map[at + 1])},
                           .name = name,
                           .domain = "tenon",
                           .scope = "teacher",
                           .output_names = {name}}));
    out.push_back(held.output());
  }
  return out;
}

}  // namespace tenon::distiller
