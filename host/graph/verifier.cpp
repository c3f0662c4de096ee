// SPDX-License-Identifier: Apache-2.0
#include "graph/verifier.hpp"

#include <algorithm>
#include <unordered_set>

#include "graph/edit.hpp"
#include "graph/op_table.hpp"

namespace tenon::host {
namespace {

struct Checked {
  const tn_graph& graph;
  const Tables& t;
  const OpTable& ops;

  const Value* value(tn_value_id id) const { return t.values.find(id); }
};

Status check_order(const Checked& c) {  // V1
  std::vector<uint8_t> seen(c.t.nodes.capacity());
  for (tn_node_id id : c.t.order) {
    const Node& node = *c.t.nodes.find(id);
    for (tn_value_id input : node.inputs) {
      const Value* value = c.value(input);
      if (value && value->producer != 0 && !seen[Slots<Node, 0>::index(value->producer)])
        return invalid(cat(node_text(node), ": input ", *value->name, " is made by a later node"));
    }
    seen[Slots<Node, 0>::index(id)] = 1;
  }
  return {};
}

Status check_values(const Checked& c) {  // V2
  for (tn_node_id id : c.t.order) {
    const Node& node = *c.t.nodes.find(id);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != 0 && !c.value(node.inputs[i]))
        return invalid(cat(node_text(node), ": input ", i, ": there is no such value"));
  }
  for (const Output& output : c.t.outputs)
    if (!c.value(output.value))
      return invalid(cat("output ", *output.name, ": there is no such value"));
  return {};
}

Status check_arities(const Checked& c) {  // V3
  for (tn_node_id id : c.t.order) {
    const Node& node = *c.t.nodes.find(id);
    const OpRow* row = c.ops.find(c.t, node.domain, node.type);
    if (!row || c.t.function(node.domain, node.type)) continue;
    if (Status wrong = check_arity(*row, node); !wrong.ok())
      return {TN_INVALID_ARGUMENT, node_text(node), "host", std::move(wrong)};
  }
  return {};
}

Status check_node_attributes(const OpRow& row, const Node& node) {
  for (const auto& [name, value] : node.attrs) {
    const AttrSpec* spec = row.attribute(name);
    if (!spec) {
      std::vector<std::string_view> known;
      for (const AttrSpec& other : row.attributes)
        known.push_back(other.name);
      return invalid(cat(node_text(node), ": attribute ", name,
                         ": the operator has none of this name", did_you_mean(name, known)));
    }
    if (!has_type(value->get(), spec->type))
      return invalid(cat(node_text(node), ": attribute ", name, ": expected ", spec->type, ", got ",
                         any_text(value->get())));
  }
  return {};
}

Status check_attributes(const Checked& c) {  // V4
  for (tn_node_id id : c.t.order) {
    const Node& node = *c.t.nodes.find(id);
    const OpRow* row = c.ops.find(c.t, node.domain, node.type);
    if (row && !c.t.function(node.domain, node.type)) TN_CHECK(check_node_attributes(*row, node));
  }
  return {};
}

Status check_inference(const Checked& c) {  // V5
  auto copy = Ref<tn_graph>::take(clone(c.graph));
  copy->frozen = false;
  TN_TRY(edit, begin_edit(copy.get()));
  for (tn_node_id id : c.t.order) {
    TN_CHECK(edit->infer(id));
    for (tn_value_id output : c.t.nodes.find(id)->outputs) {
      const Type& ours = *c.value(output)->type;
      const Type& inferred = *edit->tables().values.find(output)->type;
      if (!agree(ours, inferred))
        return invalid(cat(node_text(*c.t.nodes.find(id)), ": output ", *c.value(output)->name,
                           ": expected ", type_text(inferred), ", got ", type_text(ours)));
    }
  }
  return {};
}

Status check_names(const Checked& c) {  // V6
  std::unordered_set<std::string_view> seen;
  for (const Output& output : c.t.outputs)
    if (!seen.insert(*output.name).second)
      return invalid(cat("output ", *output.name, ": two outputs have this name"));
  for (tn_value_id id : c.t.inputs)
    if (c.t.find_value(*c.value(id)->name) != id)
      return invalid(cat("input ", *c.value(id)->name, ": two values have this name"));
  return {};
}

Status check_states(const Checked& c) {  // V7
  std::unordered_set<tn_value_id> seen;
  for (auto [input, output] : c.t.states) {
    const Value* in = c.value(input);
    const Value* out = c.value(output);
    if (!in || !out) return invalid("state pair: one of its values is gone");
    std::string pair = cat("state pair ", *in->name, " -> ", *out->name, ": ");
    if (!in->is_input) return invalid(cat(pair, *in->name, " is no input"));
    if (out->as_output == 0) return invalid(cat(pair, *out->name, " is no output"));
    if (!seen.insert(input).second) return invalid(cat(pair, *in->name, " is in two pairs"));
    if (!agree(*in->type, *out->type))
      return invalid(cat(pair, "expected types that agree, got ", type_text(*in->type), " and ",
                         type_text(*out->type)));
  }
  return {};
}

// What a body captures are its last inputs, and the node's.
Status check_body(const Checked& c, const Node& node, const NamedAny& attr, int64_t captures) {
  const tn_graph& body = *graph_in(attr.value->get());
  const auto& formal = body.tables->inputs;
  std::string what = cat(node_text(node), ": body ", attr.name, ": ");
  auto n = static_cast<size_t>(captures);
  if (captures < 0 || n > formal.size() || n > node.inputs.size())
    return invalid(cat(what, "expected ", captures, " captured inputs, got ", formal.size(),
                       " in the body and ", node.inputs.size(), " in the node"));
  for (size_t i = 1; i <= n; ++i) {
    const Value& inner = *body.tables->values.find(formal[formal.size() - i]);
    const Value* outer = c.value(node.inputs[node.inputs.size() - i]);
    if (outer && !agree(*inner.type, *outer->type))
      return invalid(cat(what, "input ", *inner.name, ": expected ", type_text(*outer->type),
                         ", got ", type_text(*inner.type)));
  }
  if (Status broken = verify_tables(body); !broken.ok())
    return {TN_INVALID_ARGUMENT, what.substr(0, what.size() - 2), "host", std::move(broken)};
  return {};
}

Status check_bodies(const Checked& c) {  // V8
  for (tn_node_id id : c.t.order) {
    const Node& node = *c.t.nodes.find(id);
    int64_t captures = 0;
    if (const NamedAny* attr = find(node.attrs, "captures"))
      if (attr->value->tag() == TN_ANY_I64) captures = attr->value->get().v.i;
    for (const NamedAny& attr : node.attrs)
      if (attr.value->tag() == TN_ANY_GRAPH) TN_CHECK(check_body(c, node, attr, captures));
  }
  return {};
}

Status check_functions(const Checked& c) {  // V9
  if (c.t.functions.empty()) return {};
  for (const Function& function : c.t.functions) {
    if (Status broken = verify_tables(*function.body); !broken.ok())
      return {TN_INVALID_ARGUMENT, cat("function ", op_text(function.domain, function.type)),
              "host", std::move(broken)};
  }
  for (tn_node_id id : c.t.order) {
    const Node& node = *c.t.nodes.find(id);
    const Function* called = c.t.function(node.domain, node.type);
    if (!called) continue;
    const Tables& body = *called->body->tables;
    if (node.inputs.size() > body.inputs.size() || node.outputs.size() > body.outputs.size())
      return invalid(cat(node_text(node), ": expected at most ", body.inputs.size(), " inputs and ",
                         body.outputs.size(), " outputs, got ", node.inputs.size(), " and ",
                         node.outputs.size()));
  }
  return {};
}

Status check_sizes(const Checked& c) {  // V10
  auto check = [&](const Value& value) -> Status {
    if (size_of(*value.type)) return {};
    return invalid(
        cat("value ", *value.name, ": ", type_text(*value.type), ": its size overflows"));
  };
  for (tn_value_id id : c.t.inputs)
    TN_CHECK(check(*c.value(id)));
  for (tn_node_id id : c.t.order)
    for (tn_value_id output : c.t.nodes.find(id)->outputs)
      TN_CHECK(check(*c.value(output)));
  return {};
}

Status check_constants(const Checked& c) {  // V11
  for (tn_value_id id : c.t.constants) {
    const Value& value = *c.value(id);
    auto shape = value.constant->shape();
    bool same =
        value.type->dtype == value.constant->dtype() &&
        std::equal(shape.begin(), shape.end(), value.type->dims.begin(), value.type->dims.end());
    if (!same)
      return invalid(cat("constant ", *value.name, ": its tensor is no ", type_text(*value.type)));
  }
  return {};
}

struct Rule {
  std::string_view name;
  bool at_commit;  // false: the edit has done it for what changed
  Status (*check)(const Checked&);
};

constexpr Rule kRules[] = {
    {"V2 values exist", true, check_values},  {"V1 acyclic", true, check_order},
    {"V3 arity", true, check_arities},        {"V4 attributes", true, check_attributes},
    {"V6 names", true, check_names},          {"V8 bodies", true, check_bodies},
    {"V9 functions", true, check_functions},  {"V10 sizes", true, check_sizes},
    {"V11 constants", true, check_constants}, {"V5 types", false, check_inference},
    {"V7 states", true, check_states},
};

Status run(const tn_graph& graph, bool all) {
  Checked checked{graph, *graph.tables, *graph.ctx->session->ops};
  for (const Rule& rule : kRules) {
    if (!rule.at_commit && !all) continue;
    if (Status broken = rule.check(checked); !broken.ok())
      return {TN_INVALID_ARGUMENT, rule.name, "host", std::move(broken)};
  }
  return {};
}

}  // namespace

// needed: by position, whether an input may not be absent; there are no others.
Status check_inputs(const Node& node, const std::vector<bool>& needed) {
  size_t least = 0, n = node.inputs.size();
  for (size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) least = i + 1;
    if (needed[i] && i < n && node.inputs[i] == 0)
      return invalid(cat("input ", i, ": expected a value, got none"));
  }
  while (n > needed.size() && node.inputs[n - 1] == 0)
    --n;
  if (n >= least && n <= needed.size()) return {};
  if (!needed.empty())
    least = std::max<size_t>(least, 1);  // where one is chosen: which, binding says
  return invalid(cat("expected ", least, least == needed.size() ? "" : cat("..", needed.size()),
                     needed.size() == 1 ? " input, got " : " inputs, got ", n));
}

Status check_arity(const OpRow& row, const Node& node) {
  if (size_t n = node.outputs.size(); n == 0 || (n > 1 && (row.op.traits & TN_OP_POINTWISE)))
    return invalid(cat("expected 1 output", n == 0 ? " or more" : "", ", got ", n));
  if (!row.axes || row.axes->is_pointwise()) {
    bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [](auto id) { return id != 0; });
    if ((row.op.traits & TN_OP_POINTWISE) && !any)
      return invalid("expected at least 1 input, got none");
    return row.needed ? check_inputs(node, *row.needed) : Status();
  }
  TN_CHECK(check_inputs(node, *row.needed));
  if (node.outputs.size() > row.axes_view.n_outputs)
    return invalid(
        cat("expected at most ", row.axes_view.n_outputs, " outputs, got ", node.outputs.size()));
  return {};
}

Status verify_tables(const tn_graph& graph) {
  return run(graph, false);
}

Status verify(const tn_graph& graph) {
  return run(graph, true);
}

}  // namespace tenon::host
