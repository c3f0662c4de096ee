// SPDX-License-Identifier: Apache-2.0
// Before:  If whose condition is a constant, as exporters leave it around questions about shapes.
// After:   the nodes of the branch that it takes.
// Needs:   a condition of one element. The branch's values get new names where theirs are taken.
#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

// Whether the condition is a constant, and which.
std::optional<bool> known_condition(Node node) {
  Value condition = node.input(0);
  if (!condition || !condition.is_constant() || condition.dtype() != TN_BOOL) return std::nullopt;
  DLTensor tensor = condition.constant().dl();
  if (element_count(tensor) != 1) return std::nullopt;
  return *data_of<bool>(tensor);
}

// The nodes of a branch in the place of the node that holds it.
Result<bool> inline_branch(EditView edit, Node node, const tn_graph* branch) {
  Graph body{branch};
  std::vector<Value> inputs = body.inputs(), outputs = body.outputs();
  if (inputs.size() + 1 != node.n_inputs() || outputs.size() < node.n_outputs()) return false;
  std::vector<tn_value_id> pairs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!node.input(i + 1)) return false;
    pairs.insert(pairs.end(), {inputs[i].id, node.input(i + 1).id});
  }
  size_t first = pairs.size();
  for (size_t i = 0; i < node.n_outputs(); ++i)
    pairs.insert(pairs.end(), {outputs[i].id, 0});
  TN_CHECK(Status(
      services.edit->splice(edit.raw, branch, str(node.scope()), pairs.data(), pairs.size() / 2)));
  std::vector<std::pair<tn_value_id, std::string>> names;
  for (size_t i = 0; i < node.n_outputs(); ++i) {
    if (!node.output(i)) continue;
    Value made = edit.value(pairs[first + 2 * i + 1]);
    bool is_new = made.producer() && outputs[i].producer();
    if (is_new) names.emplace_back(made.id, std::string(node.output(i).name()));
    TN_CHECK(edit.replace(node.output(i), made));
  }
  TN_CHECK(edit.erase(node));
  for (const auto& [value, name] : names)  // one value may stand for two outputs
    Status ignored(services.edit->set_value_name(edit.raw, value, str(name)));
  return true;
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  TN_TRY(edit, Edit::begin(graph));
  int64_t applied = 0;
  for (Node borrowed : Graph{graph}.nodes()) {
    if (!borrowed.is("If")) continue;
    Node node = edit.node(borrowed.id);
    std::optional<bool> condition = known_condition(node);
    if (!condition || !settings.covers(node)) continue;
    tn_any branch = node.attr(*condition ? "then_branch" : "else_branch");
    if (branch.tag != TN_ANY_GRAPH) continue;
    TN_TRY(done, inline_branch(edit, node, static_cast<const tn_graph*>(branch.v.p)));
    applied += done;
  }
  if (applied > 0) TN_CHECK(edit.commit());
  return applied;
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(branches,
            "fusion.branches",
            "takes the branch of an If whose condition is known",
            tenon::fusion::run)
