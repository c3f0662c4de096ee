// SPDX-License-Identifier: Apache-2.0
#include "branch_grad.hpp"

#include <algorithm>
#include <unordered_set>

#include "interface.hpp"
#include "joint.hpp"
#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

// Nodes that these values need, as a set.
std::unordered_set<tn_node_id> needed_by(const std::vector<Value>& values) {
  std::unordered_set<tn_node_id> out;
  for (Node node : nodes_behind(values))
    out.insert(node.id);
  return out;
}

// One branch, forward and backward in one graph. Inputs: what the node captures, then cotangents.
// Outputs: results, values that are saved, gradients.
struct JointBranch {
  OwnedGraph graph;
  size_t n_captures = 0, n_results = 0, n_saved = 0;

  std::vector<Type> saved_types() const {
    std::vector<Value> outputs = graph.view().outputs();
    std::vector<Type> out;
    for (size_t i = n_results; i < n_results + n_saved; ++i)
      out.push_back(outputs[i].type());
    return out;
  }
};

// What the backward pass reads of the forward pass, in order. A view is recomputed from what it is
// a view of.
std::vector<Value> crossing(const std::vector<Value>& results,
                            const std::vector<Value>& gradients) {
  std::unordered_set<tn_node_id> forward = needed_by(results);
  std::unordered_set<tn_value_id> known;
  std::vector<Value> out;
  auto read = [&](Value value) {
    value = base_of(value);
    Node made = value.producer();
    if (!made || !forward.contains(made.id) || !value.type().is_static()) return;
    if (known.insert(value.id).second) out.push_back(value);
  };
  std::vector<Value> there;
  for (Value gradient : gradients)
    if (gradient) there.push_back(gradient);
  for (Node node : nodes_behind(there)) {
    if (forward.contains(node.id)) continue;
    for (Value input : node.inputs())
      if (input) read(input);
  }
  for (Value gradient : there)
    read(gradient);
  return out;
}

Result<JointBranch> joint_branch(Gradients& g, Graph branch) {
  JointBranch out;
  TN_TRY(body, Body::begin(g.edit().ctx()));
  std::vector<Value> ours, outputs, cotangents, wrt;
  for (uint64_t i = 1; i < g.of().n_inputs(); ++i) {
    TN_TRY(value, body.input(branch.inputs().at(i - 1).type()));
    ours.push_back(value);
    if (g.wanted(i)) wrt.push_back(value);
  }
  TN_TRY(results, body.copy(branch, ours));
  out.n_captures = ours.size();
  out.n_results = g.of().n_outputs();
  results.resize(out.n_results);
  for (uint64_t i = 0; i < out.n_results; ++i) {
    TN_CHECK(body.output(results[i]));
    if (!g.cotangent(i)) continue;
    TN_TRY(cotangent, body.input(results[i].type()));
    cotangents.push_back(cotangent);
    outputs.push_back(results[i]);
  }
  TN_TRY(gradients, gradients_inside(body, outputs, cotangents, wrt));
  results = body.edit.graph().outputs();  // a composite node on the way became its parts
  std::vector<Value> saved = crossing(results, gradients);
  out.n_saved = saved.size();
  for (Value value : saved) {
    // An output that is handed on as it is would be one value under two names.
    Value kept = value;
    if (value.is_output()) {
      TN_TRY(same, body.edit.op("Identity", {value}));
      kept = same;
    }
    TN_CHECK(body.edit.output({}, kept));
  }
  for (size_t i = 0; i < wrt.size(); ++i)
    TN_CHECK(add_gradient(body, gradients[i], wrt[i]));
  TN_CHECK(body.finish());
  out.graph = std::move(body.graph);
  return out;
}

Status remove_outputs(const Edit& edit, size_t from, size_t to) {
  for (size_t i = to; i-- > from;)
    TN_CHECK(services.edit->remove_output(edit.raw, i));
  return {};
}

Status add_zeros(const Edit& edit, const std::vector<Type>& types) {
  for (const Type& type : types) {
    TN_TRY(zero, Tensor::zeros(edit.ctx(), type.dtype, std::vector<int64_t>{}));
    TN_TRY(number, edit.constant(zero));
    TN_TRY(dims, edit.ints(type.dims));
    TN_TRY(zeros, edit.op("Expand", {number, dims}));
    TN_CHECK(edit.output({}, zeros));
  }
  return {};
}

// The branch as it runs: results, then what it saves among what all branches save.
Result<OwnedGraph> forward_of(const JointBranch& joint,
                              const std::vector<Type>& before,
                              const std::vector<Type>& behind) {
  TN_TRY(graph, OwnedGraph::copy_of(joint.graph.get()));
  TN_TRY(edit, Edit::begin(graph.get()));
  std::vector<Value> outputs = edit.graph().outputs();
  TN_CHECK(remove_outputs(edit, joint.n_results, outputs.size()));
  TN_CHECK(add_zeros(edit, before));
  for (size_t i = joint.n_results; i < joint.n_results + joint.n_saved; ++i)
    TN_CHECK(edit.output({}, outputs[i]));
  TN_CHECK(add_zeros(edit, behind));
  TN_CHECK(drop_dead_nodes(edit));
  for (size_t i = edit.graph().inputs().size(); i-- > joint.n_captures;)
    TN_CHECK(services.edit->remove_input(edit.raw, i));
  TN_CHECK(edit.commit());
  return std::move(graph);
}

// The gradient of the branch: captures, cotangents, then what all branches have saved.
Result<OwnedGraph> backward_of(const JointBranch& joint,
                               const std::vector<Type>& before,
                               const std::vector<Type>& behind) {
  TN_TRY(graph, OwnedGraph::copy_of(joint.graph.get()));
  TN_TRY(edit, Edit::begin(graph.get()));
  auto take = [&](const std::vector<Type>& types) -> Status {
    for (const Type& type : types)
      if (auto made = edit.input(cat("saved", edit.graph().inputs().size()), type); !made.ok())
        return std::move(made).status();
    return {};
  };
  std::vector<Value> outputs = edit.graph().outputs();
  TN_CHECK(take(before));
  for (size_t i = joint.n_results; i < joint.n_results + joint.n_saved; ++i) {
    // An Identity stands for a result that is saved as well.
    Value saved = outputs[i];
    if (Node same = saved.producer(); same && same.is("Identity")) saved = same.input(0);
    TN_TRY(given, edit.input(cat("saved", edit.graph().inputs().size()), saved.type()));
    TN_CHECK(edit.replace(saved, given));
  }
  TN_CHECK(take(behind));
  TN_CHECK(remove_outputs(edit, 0, joint.n_results + joint.n_saved));
  TN_CHECK(drop_dead_nodes(edit));
  TN_CHECK(edit.commit());
  return std::move(graph);
}

// Inputs that neither branch reads are none of the node's: what they hold would be kept for
// nothing.
Status drop_unread(std::vector<OwnedGraph>& branches, std::vector<Value>& inputs) {
  TN_TRY(first, Edit::begin(branches[0].get()));
  TN_TRY(second, Edit::begin(branches[1].get()));
  for (size_t i = inputs.size(); i-- > 0;) {
    bool is_read = false;
    for (const Edit* edit : {&first, &second}) {
      Value input = edit->graph().inputs()[i];
      is_read = is_read || input.consumer_count() > 0 || input.is_output();
    }
    if (is_read) continue;
    for (const Edit* edit : {&first, &second})
      TN_CHECK(services.edit->remove_input(edit->raw, i));
    inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(i));
  }
  TN_CHECK(first.commit());
  return second.commit();
}

Result<Node> add_if(Gradients& g,
                    const std::vector<OwnedGraph>& branches,
                    const std::vector<Value>& captured,
                    uint64_t n_outputs) {
  std::vector<Value> inputs{g.in(0)};
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  Node node = g.node({.type = "If",
                      .inputs = inputs,
                      .attrs = {{"then_branch", any_graph(branches[0].get())},
                                {"else_branch", any_graph(branches[1].get())},
                                {"captures", static_cast<int64_t>(captured.size())}},
                      .n_outputs = n_outputs});
  TN_CHECK(g.status());
  return node;
}

// The node again, with what its branches save behind its outputs.
Result<std::vector<Value>> save(Gradients& g,
                                const std::vector<JointBranch>& joints,
                                const std::vector<Type>& first,
                                const std::vector<Type>& second) {
  if (first.empty() && second.empty()) return std::vector<Value>();
  std::vector<OwnedGraph> forward;
  TN_TRY(yes, forward_of(joints[0], {}, second));
  TN_TRY(no, forward_of(joints[1], first, {}));
  forward.push_back(std::move(yes));
  forward.push_back(std::move(no));
  std::vector<Value> captured = g.of().inputs(), saved;
  captured.erase(captured.begin());
  uint64_t n_results = g.of().n_outputs(), n_all = n_results + first.size() + second.size();
  TN_TRY(node, add_if(g, forward, captured, n_all));
  for (uint64_t i = 0; i < n_results; ++i)
    TN_CHECK(g.edit().replace(g.of().output(i), node.output(i)));
  for (uint64_t i = n_results; i < n_all; ++i)
    saved.push_back(node.output(i));
  return saved;
}

}  // namespace

Result<std::vector<Value>> gradients_inside(const Body& body,
                                            const std::vector<Value>& outputs,
                                            const std::vector<Value>& cotangents,
                                            const std::vector<Value>& wrt) {
  Request request{{}, cotangents, wrt};
  uint64_t before = body.edit.graph().outputs().size();
  for (Value output : outputs) {
    request.outputs.push_back(body.edit.graph().outputs().size());
    TN_CHECK(body.edit.output(cat("forward", request.outputs.back()), output));
  }
  TN_TRY(gradients, reverse(body.edit, request));
  for (uint64_t i = before + outputs.size(); i-- > before;)
    TN_CHECK(services.edit->remove_output(body.edit.raw, i));
  return gradients;
}

Status add_gradient(const Body& body, Value gradient, Value of) {
  Builder b(body.edit);
  Value value = gradient ? gradient : b.zeros_like(of);
  TN_CHECK(b.status());
  return body.output(value);
}

Status if_gradient(Gradients& g) {
  std::vector<JointBranch> joints;
  for (const char* name : {"then_branch", "else_branch"}) {
    Graph branch = body_of(g.of(), name);
    if (!branch.raw || branch.inputs().size() + 1 != g.of().n_inputs() ||
        branch.outputs().size() < g.of().n_outputs())
      return invalid("expected then_branch and else_branch that fit its inputs and outputs");
    TN_TRY(joint, joint_branch(g, branch));
    joints.push_back(std::move(joint));
  }
  std::vector<Type> first = joints[0].saved_types(), second = joints[1].saved_types();
  std::vector<OwnedGraph> backward;
  TN_TRY(yes, backward_of(joints[0], {}, second));
  TN_TRY(no, backward_of(joints[1], first, {}));
  backward.push_back(std::move(yes));
  backward.push_back(std::move(no));
  std::vector<Value> inputs = g.of().inputs();
  inputs.erase(inputs.begin());
  for (uint64_t i = 0; i < g.of().n_outputs(); ++i)
    if (g.cotangent(i)) inputs.push_back(g.cotangent(i));
  TN_TRY(saved, save(g, joints, first, second));
  inputs.insert(inputs.end(), saved.begin(), saved.end());
  TN_CHECK(drop_unread(backward, inputs));
  std::vector<uint64_t> wanted;
  for (uint64_t i = 1; i < g.of().n_inputs(); ++i)
    if (g.wanted(i)) wanted.push_back(i);
  TN_TRY(node, add_if(g, backward, inputs, wanted.size()));
  for (size_t i = 0; i < wanted.size(); ++i)
    g.set(wanted[i], node.output(i));
  return {};
}

}  // namespace tenon::autodiff
