// SPDX-License-Identifier: Apache-2.0
#include "interface.hpp"

#include <algorithm>
#include <unordered_set>

#include "reverse.hpp"
#include "rules.hpp"

namespace tenon::autodiff {
namespace {

std::string names_of_inputs(const Graph& graph) {
  std::string out;
  for (uint64_t i = 0; i < graph.inputs().size(); ++i)
    out += cat(i ? ", " : "", graph.input_name(i));
  return out.empty() ? "none" : out;
}

Result<Named> by_position(const Graph& graph, int64_t position) {
  std::vector<Value> inputs = graph.inputs();
  auto n = static_cast<int64_t>(inputs.size());
  if (position < -n || position >= n)
    return invalid(
        cat("option argnums: expected positions in ", -n, "..", n - 1, ", got ", position));
  auto i = static_cast<size_t>(position < 0 ? position + n : position);
  return Named{std::string(graph.input_name(i)), inputs[i]};
}

Result<Named> by_name(const Graph& graph, const std::string& name) {
  std::vector<Value> inputs = graph.inputs();
  for (uint64_t i = 0; i < inputs.size(); ++i)
    if (graph.input_name(i) == name) return Named{name, inputs[i]};
  Value value = graph.find(name);
  if (!value || !value.is_constant())
    return invalid(cat("option wrt: expected an input or a constant (inputs: ",
                       names_of_inputs(graph), "), got '", name, "'"));
  return Named{name, value};
}

}  // namespace

Result<Wrt> Wrt::from(const Options& options) {
  Wrt out{options.texts("wrt"), ints_of(options.get("argnums"))};
  if (!out.names.empty() && !out.argnums.empty())
    return invalid("options wrt, argnums: expected one of them, got both");
  if (out.names.empty() && out.argnums.empty()) out.argnums = {0};
  return out;
}

Result<std::vector<Named>> find_wrt(const EditView& edit, const Wrt& wrt) {
  std::vector<Named> out;
  Graph graph = edit.graph();
  for (int64_t position : wrt.argnums) {
    TN_TRY(found, by_position(graph, position));
    out.push_back(found);
  }
  for (const std::string& name : wrt.names) {
    TN_TRY(found, by_name(graph, name));
    out.push_back(found);
  }
  for (const Named& named : out)
    TN_CHECK(expect_float(named.value, cat("input ", named.name)));
  return out;
}

Status expect_float(Value value, std::string_view what) {
  uint32_t dtype = value.dtype();
  if (is_float(dtype)) return {};
  return invalid(cat(what, ": expected a float type to differentiate, got ",
                     dtype == TN_DTYPE_NONE ? "an unknown type" : dtype_name(dtype)));
}

Status fold_shapes(tn_ctx* ctx, tn_graph* graph, const Cancel& cancel) {
  Status folded = run_pass(ctx, graph, "fusion.shapes", {}, cancel.raw());
  return folded.code() == TN_NOT_FOUND ? Status() : std::move(folded);
}

bool is_state_output(const EditView& edit, Value value) {
  std::vector<Value> states = edit.graph().list(TN_LIST_STATES, 1);
  return std::find(states.begin(), states.end(), value) != states.end();
}

Result<std::vector<uint64_t>> find_outputs(const EditView& edit,
                                           const std::vector<std::string>& names) {
  Graph graph = edit.graph();
  std::vector<Value> outputs = graph.outputs();
  std::vector<uint64_t> out;
  std::string known;
  for (uint64_t i = 0; i < outputs.size(); ++i) {
    known += cat(i ? ", " : "", graph.output_name(i));
    bool meant = is_float(outputs[i].dtype()) && !is_state_output(edit, outputs[i]);
    if (names.empty() && meant) out.push_back(i);
  }
  for (const std::string& name : names) {
    uint64_t i = 0;
    while (i < outputs.size() && graph.output_name(i) != name)
      ++i;
    if (i == outputs.size())
      return invalid(cat("option output: expected one of ", known, ", got '", name, "'"));
    TN_CHECK(expect_float(outputs[i], cat("output ", name)));
    out.push_back(i);
  }
  if (out.empty()) return invalid("the graph has no output of a float type to differentiate");
  return out;
}

// A transform of what a transform made finds its names taken: the second is called NAME.2.
std::string free_name(const EditView& edit, const std::string& wanted) {
  auto is_taken = [&](const std::string& name) {
    Graph graph = edit.graph();
    uint64_t n = graph.outputs().size(), i = 0;
    while (i < n && graph.output_name(i) != name)
      ++i;
    return i < n || graph.find(name);
  };
  std::string name = wanted;
  for (int n = 2; is_taken(name); ++n)
    name = cat(wanted, ".", n);
  return name;
}

Status add_outputs(const EditView& edit,
                   std::string_view prefix,
                   const std::vector<Named>& names,
                   const std::vector<Value>& values) {
  Builder b(edit);
  for (size_t i = 0; i < names.size(); ++i) {
    Value value = values[i] ? values[i] : b.zeros_like(names[i].value);
    TN_CHECK(b.status());
    TN_CHECK(edit.output(free_name(edit, cat(prefix, "/", names[i].name)), value));
  }
  return {};
}

Result<Value> add_input(const EditView& edit, const std::string& name, Value like) {
  return edit.input(free_name(edit, name), like.type());
}

Status drop_dead_nodes(const EditView& edit,
                       const std::unordered_map<tn_value_id, Value>& replaced) {
  Graph graph = edit.graph();
  std::vector<Value> needed = graph.outputs();
  for (Value state : graph.list(TN_LIST_STATES, 1))
    needed.push_back(state);
  std::vector<Node> all = graph.nodes();
  for (Node node : all) {
    const tn_op* row = node.row();
    if (!row || !(row->traits & TN_OP_STATEFUL)) continue;
    for (Value output : node.outputs())
      if (output && !replaced.count(output.id)) needed.push_back(output);
  }
  std::unordered_set<tn_node_id> live;
  for (Node node : nodes_behind(needed))
    live.insert(node.id);
  std::vector<Node> dead;
  for (Node node : all)
    if (!live.count(node.id)) dead.push_back(node);
  // Any order will do: commit looks at the whole.
  for (Node node : dead)
    TN_CHECK(edit.erase(node));
  return {};
}

Status inline_calls(const EditView& edit) {
  for (bool found = true; found;) {
    found = false;
    for (Node node : edit.graph().nodes()) {
      if (!function_of(node)) continue;
      TN_CHECK(services.op->decompose(edit.raw, node.id));
      found = true;
    }
  }
  return {};
}

}  // namespace tenon::autodiff
