// SPDX-License-Identifier: Apache-2.0
// Gradients of gradients say it, for every operator that has them: each read becomes an input of
// its own, and the gradients of all outputs grad/... by those inputs are built. They are linear in
// a value when their slope by none of its reads leads back to one of its reads. A slope that is
// zero belongs to a step.
#include "saved_reads.hpp"

#include <unordered_map>

#include "product_pass.hpp"
#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

constexpr std::string_view kGradient = "grad/";

// Positions of outputs grad/... of float type.
std::vector<uint64_t> gradients_of(Graph graph) {
  std::vector<uint64_t> out;
  std::vector<Value> outputs = graph.outputs();
  for (uint64_t i = 0; i < outputs.size(); ++i)
    if (graph.output_name(i).starts_with(kGradient) && is_float(outputs[i].dtype()))
      out.push_back(i);
  return out;
}

// Reads by the places of their nodes, which copies of a graph share.
struct Placed {
  size_t node;
  uint64_t input;
  tn_value_id base;
};

class Slopes {
 public:
  Slopes(const tn_graph* graph, const std::vector<Placed>& reads) : graph_(graph), reads_(reads) {}

  // One for each read; fails where an operator on the way has no gradient of its gradient.
  Result<std::vector<ReadKind>> run() {
    TN_TRY(copy, OwnedGraph::copy_of(graph_));
    TN_TRY(edit, Edit::begin(copy.get()));
    std::vector<Node> nodes = edit.graph().nodes();
    std::vector<Value> inputs;
    Builder b(edit);
    for (const Placed& read : reads_) {
      Value value = nodes[read.node].input(read.input);
      TN_TRY(input, add_input(edit, "saved", value));
      TN_CHECK(edit.set_input(nodes[read.node], read.input, input));
      base_[input.id] = read.base;
      inputs.push_back(input);
    }
    std::vector<uint64_t> positions = gradients_of(edit.graph());
    std::vector<Value> cotangents;
    for (uint64_t i : positions) {
      TN_TRY(cotangent, add_input(edit, "cotangent", edit.graph().outputs()[i]));
      cotangents.push_back(cotangent);
    }
    TN_TRY(slopes, reverse(edit, {positions, cotangents, inputs}));
    std::vector<ReadKind> out;
    for (size_t i = 0; i < reads_.size(); ++i)
      out.push_back(!slopes[i]                            ? ReadKind::kStep
                    : leads_to(slopes[i], reads_[i].base) ? ReadKind::kNonlinear
                                                          : ReadKind::kLinear);
    return out;
  }

 private:
  bool leads_to(Value from, tn_value_id base) const {
    std::unordered_set<tn_value_id> seen;
    std::vector<Value> open{from};
    while (!open.empty()) {
      Value value = open.back();
      open.pop_back();
      if (!seen.insert(value.id).second) continue;
      if (auto at = base_.find(value.id); at != base_.end() && at->second == base) return true;
      if (Node node = value.producer())
        for (Value input : node.inputs())
          if (input) open.push_back(input);
    }
    return false;
  }

  const tn_graph* graph_;
  const std::vector<Placed>& reads_;
  std::unordered_map<tn_value_id, tn_value_id> base_;  // by the input in place of a read
};

bool is_saved(Value value, const Joint& joint) {
  if (!value || value.is_constant() || !is_float(value.dtype())) return false;
  Value base = base_of(value);
  return joint.place(value.producer()) >= 0 && joint.place(base.producer()) >= 0 &&
         !base.is_output() && value.type().is_static();
}

}  // namespace

Result<std::vector<SavedRead>> saved_reads(const tn_graph* graph, const Joint& joint) {
  std::vector<SavedRead> out;
  std::vector<Placed> placed;
  std::unordered_map<tn_node_id, size_t> places;
  for (Node node : Graph{graph}.nodes())
    places.emplace(node.id, places.size());
  for (Node node : joint.others())
    for (uint64_t i = 0; i < node.n_inputs(); ++i) {
      Value value = node.input(i);
      if (!is_saved(value, joint)) continue;
      out.push_back({node, i, value, base_of(value)});
      placed.push_back({places[node.id], i, base_of(value).id});
    }
  Result<std::vector<ReadKind>> kinds = Slopes(graph, placed).run();
  for (size_t i = 0; i < out.size(); ++i) {
    if (kinds.ok()) {
      out[i].kind = (*kinds)[i];
      continue;
    }
    std::vector<Placed> alone;  // all reads of one value
    size_t at = 0;
    for (size_t k = 0; k < placed.size(); ++k) {
      if (k == i) at = alone.size();
      if (placed[k].base == placed[i].base) alone.push_back(placed[k]);
    }
    Result<std::vector<ReadKind>> of = Slopes(graph, alone).run();
    if (of.ok()) out[i].kind = (*of)[at];
  }
  return out;
}

}  // namespace tenon::autodiff
