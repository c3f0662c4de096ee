// SPDX-License-Identifier: Apache-2.0
// Before:  nodes whose inputs are all constants; integer values whose numbers shape inference knows
//          (Shape of a known shape and what is computed from it).
// After:   constants under the names of the values that they replace.
// Needs:   operators that are pure, with a plain kernel; results at most max_bytes larger than what
//          they are made from (with shared = keep: than what goes with them, so that the Transpose
//          of a tied embedding stays). QuantizeLinear and DequantizeLinear stay: they carry the
//          meaning of quantized weights.
#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "tenon/sdk/plan.hpp"

#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

constexpr std::string_view kContents = "tenon.dims";  // the note of shape columns on a value
constexpr uint32_t kImpure = TN_OP_RANDOM | TN_OP_STATEFUL | TN_OP_CONTROL;

// The quantized form of weights is what the graph says about them.
bool is_quantization(Node node) {
  return node.is("QuantizeLinear") || node.is("DequantizeLinear");
}

std::optional<std::vector<int64_t>> known_contents(Value value) {
  tn_any note = value.note(kContents);
  if (note.tag != TN_ANY_TEXTS) return std::nullopt;
  std::vector<int64_t> out;
  for (const std::string& text : texts_of(note)) {
    int64_t number = 0;
    auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
    out.push_back(number);
  }
  return out;
}

Result<Value> integers_constant(EditView edit,
                                const Type& type,
                                const std::vector<int64_t>& numbers,
                                std::string_view name) {
  if (type.dtype == TN_I64) return edit.constant<int64_t>(TN_I64, type.dims, numbers, name);
  std::vector<int32_t> narrow(numbers.begin(), numbers.end());
  return edit.constant<int32_t>(TN_I32, type.dims, narrow, name);
}

// A node whose result inference knows, and what it is.
struct Known {
  tn_node_id node;
  std::vector<int64_t> numbers;
};

std::vector<Known> known_results(tn_graph* graph, const Settings& settings) {
  std::vector<Known> out;
  for (Node node : Graph{graph}.nodes()) {
    if (node.n_outputs() != 1 || !settings.covers(node)) continue;
    Value value = node.output();
    if (value.consumer_count() == 0 && !value.is_output()) continue;
    std::optional<std::vector<int64_t>> known = known_contents(value);
    if (!known) continue;
    Type type = value.type();
    bool integers = type.dtype == TN_I64 || type.dtype == TN_I32;
    if (integers && type.is_static() && type.rank() <= 1 &&
        type.elements() == static_cast<int64_t>(known->size()))
      out.push_back({node.id, std::move(*known)});
  }
  return out;
}

// Whether something reads the node's result that is not itself one of those known.
bool is_read_beside(Node node, const std::unordered_set<tn_node_id>& known) {
  const Value value = node.output();
  bool is_read = value.is_output();
  for (uint64_t i = 0, n = value.consumer_count(); i < n && !is_read; ++i)
    is_read = !known.contains(value.consumer(i).id);
  return is_read;
}

// The numbers that inference found, as constants where something else reads them. Values keep their
// names.
Result<int64_t> fold_known(tn_graph* graph, const Settings& settings) {
  std::vector<Known> known = known_results(graph, settings);
  if (known.empty()) return int64_t{0};
  std::unordered_set<tn_node_id> all;
  for (const Known& one : known)
    all.insert(one.node);
  TN_TRY(edit, Edit::begin(graph));
  std::vector<std::pair<Value, std::string>> names;
  for (const Known& one : known) {
    Node node = edit.node(one.node);
    if (!is_read_beside(node, all)) continue;
    Value value = node.output();
    std::string name(value.name());
    TN_TRY(constant, integers_constant(edit, value.type(), one.numbers, name));
    TN_CHECK(edit.replace(value, constant));
    names.emplace_back(constant, std::move(name));
  }
  for (auto one = known.rbegin(); one != known.rend(); ++one)
    TN_CHECK(edit.erase(edit.node(one->node)));
  for (const auto& [constant, name] : names)
    TN_CHECK(services.edit->set_value_name(edit.raw, constant.id, str(name)));
  TN_CHECK(edit.commit());
  return static_cast<int64_t>(known.size());
}

// Nodes that can be computed now, in topological order.
class Candidates {
 public:
  Candidates(tn_graph* graph,
             const Settings& settings,
             const std::unordered_set<tn_node_id>& refused)
      : settings_(settings) {
    for (Node node : Graph{graph}.nodes()) {
      if (refused.count(node.id) != 0 || !foldable(node)) continue;
      nodes.push_back(node.id);
      for (Value output : node.outputs())
        computed_.insert(output.id);
    }
  }
  std::vector<tn_node_id> nodes;

 private:
  bool foldable(Node node) const {
    if (node.n_inputs() == 0 || !reads_constants(node)) return false;  // nearly all
    const tn_op* row = node.row();
    if (!row || (row->traits & kImpure) != 0 || is_quantization(node)) return false;
    if (!row->ref && row->expr.len == 0 && !row->decompose) return false;
    return settings_.covers(node) && makes_tensors(node) &&
           bytes_made(node) <= bytes_saved(node) + static_cast<uint64_t>(settings_.max_bytes);
  }
  // A weight that is to be trained is a constant until then: what is decided by it is not known.
  bool is_open(uint32_t dtype) const { return settings_.integers_only && is_float(dtype); }
  bool reads_constants(Node node) const {
    return std::ranges::all_of(node.inputs(), [this](Value input) {
      if (!input) return true;
      bool is_known = input.is_constant() || computed_.count(input.id) != 0;
      return is_known && !is_open(input.dtype());
    });
  }
  bool makes_tensors(Node node) const {
    return std::ranges::all_of(node.outputs(), [this](Value output) {
      if (!output) return true;
      Type type = output.type();
      return type.kind == TN_KIND_TENSOR && !is_open(type.dtype);
    });
  }
  static uint64_t bytes_made(Node node) {
    uint64_t sum = 0;
    for (Value output : node.outputs())
      if (output) sum += bytes_known(output);
    return sum;
  }
  // Of what goes with the node: a constant that others read as well stays.
  uint64_t bytes_saved(Node node) const {
    uint64_t sum = 0;
    for (Value input : node.inputs()) {
      if (!input) continue;
      bool stays = input.is_constant() && input.consumer_count() > 1;
      if (!stays || !settings_.keeps_shared) sum += bytes_known(input);
    }
    return sum;
  }
  static uint64_t bytes_known(Value value) {
    Type type = value.type();
    if (value.is_constant()) return services.tensor->bytes(value.constant().get());
    return type.is_static() ? bytes_of(type.dtype, type.elements()) : 0;
  }

  const Settings& settings_;
  std::unordered_set<tn_value_id> computed_;
};

// What these nodes make, by the names of the values; none of their inputs is open.
Status compute(tn_graph* graph,
               const Settings& settings,
               const std::vector<tn_node_id>& nodes,
               std::vector<std::string>& names,
               std::vector<Tensor>& results) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->extract(graph, nodes.data(), nodes.size(), &raw));
  OwnedGraph part = OwnedGraph::take(raw);
  TN_TRY(plan, Plan::on_first(settings.ctx, part.view(), {}, {"reference"}));
  TN_CHECK(plan.run({}, settings.cancel));
  std::vector<Value> values = part.view().outputs();
  for (size_t i = 0; i < values.size(); ++i) {
    names.emplace_back(values[i].name());
    results.push_back(plan[i]);
  }
  return {};
}

Status put(tn_graph* graph,
           const std::vector<tn_node_id>& nodes,
           const std::vector<std::string>& names,
           const std::vector<Tensor>& results) {
  TN_TRY(edit, Edit::begin(graph));
  std::vector<Value> constants;
  for (size_t i = 0; i < names.size(); ++i) {
    TN_TRY(constant, edit.constant(results[i], names[i]));
    TN_CHECK(edit.replace(edit.graph().find(names[i]), constant));
    constants.push_back(constant);
  }
  for (auto at = nodes.rbegin(); at != nodes.rend(); ++at)
    TN_CHECK(edit.erase(edit.node(*at)));
  for (size_t i = 0; i < names.size(); ++i)
    TN_CHECK(services.edit->set_value_name(edit.raw, constants[i].id, str(names[i])));
  return edit.commit();
}

// Only those that need no other of them: when one fails, it is known which.
std::vector<tn_node_id> first_level(tn_graph* graph, const std::vector<tn_node_id>& nodes) {
  std::vector<tn_node_id> out;
  for (tn_node_id id : nodes) {
    std::vector<Value> inputs = Node{graph, id}.inputs();
    bool ready = std::all_of(inputs.begin(), inputs.end(),
                             [](Value value) { return !value || value.is_constant(); });
    if (ready) out.push_back(id);
  }
  return out;
}

Result<int64_t> fold_nodes(tn_graph* graph,
                           const Settings& settings,
                           const std::vector<tn_node_id>& nodes) {
  std::vector<std::string> names;
  std::vector<Tensor> results;
  TN_CHECK(compute(graph, settings, nodes, names, results));
  TN_CHECK(put(graph, nodes, names, results));
  return static_cast<int64_t>(nodes.size());
}

// All at once; where that fails (an operator cannot run, or refuses its data), one by one, and what
// fails alone stays for the run to report.
Result<int64_t> fold_computed(tn_graph* graph,
                              const Settings& settings,
                              std::unordered_set<tn_node_id>& refused) {
  std::vector<tn_node_id> nodes = Candidates(graph, settings, refused).nodes;
  if (nodes.empty()) return int64_t{0};
  Result<int64_t> all = fold_nodes(graph, settings, nodes);
  if (all.ok()) return all;
  TN_CHECK(Cancel(settings.cancel).check());
  int64_t applied = 0;
  for (tn_node_id id : first_level(graph, nodes)) {
    TN_CHECK(Cancel(settings.cancel).check());
    Result<int64_t> one = fold_nodes(graph, settings, {id});
    if (one.ok()) {
      ++applied;
    } else {
      refused.insert(id);
    }
  }
  return applied;
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  std::unordered_set<tn_node_id> refused;
  int64_t total = 0;
  while (true) {
    size_t n_refused = refused.size();
    TN_TRY(known, fold_known(graph, settings));
    TN_TRY(computed, fold_computed(graph, settings, refused));
    total += known + computed;
    if (known + computed == 0 && refused.size() == n_refused) return total;
  }
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(constants,
            "fusion.constants",
            "computes what depends on constants and known shapes only",
            tenon::fusion::run)
