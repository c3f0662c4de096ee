// SPDX-License-Identifier: Apache-2.0
#include "joint.hpp"

#include <algorithm>

#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

constexpr std::string_view kGradient = "grad/";

bool is_seed(Value value) {
  return value && value.note(kSeedNote).tag != TN_ANY_NONE;
}

}  // namespace

Result<Joint> Joint::of(const Graph& graph) {
  Joint made;
  std::vector<Value> results;
  std::vector<Value> outputs = graph.outputs();
  bool has_gradients = false, has_seed = false;
  for (uint64_t i = 0; i < outputs.size(); ++i) {
    std::string_view name = graph.output_name(i);
    if (!name.starts_with(kGradient)) {
      results.push_back(outputs[i]);
      continue;
    }
    has_gradients = true;
    if (Value of = graph.find(name.substr(kGradient.size()))) made.parameters_.insert(of.id);
  }
  std::unordered_set<tn_node_id> needed;
  for (Node node : nodes_behind(results))
    needed.insert(node.id);
  for (Node node : graph.nodes()) {
    std::vector<Value> inputs = node.inputs();
    bool follows = std::any_of(inputs.begin(), inputs.end(),
                               [&](Value v) { return v && (is_seed(v) || made.is_backward(v)); });
    has_seed = has_seed || follows;
    for (Value output : node.outputs())
      if (output && (follows || is_seed(output))) made.backward_.insert(output.id);
    if (needed.count(node.id) && !follows) {
      made.places_[node.id] = static_cast<int>(made.forward_.size());
      made.forward_.push_back(node);
    } else {
      made.others_.push_back(node);
    }
  }
  if (has_gradients && has_seed) return made;
  return invalid(
      "expected a graph with gradients (outputs grad/NAME), as autodiff.value_and_grad makes it, "
      "got one without");
}

int Joint::place(Node node) const {
  auto found = node ? places_.find(node.id) : places_.end();
  return found == places_.end() ? -1 : found->second;
}

Value base_of(Value value) {
  for (Node node = value.producer(); node && node.row() && (node.row()->traits & TN_OP_VIEW);
       node = value.producer())
    value = node.input(0);
  return value;
}

int64_t Sizes::of(Value value) const {
  constexpr int64_t kSmall = 16384;  // elements; fewer stay in f32 (onednn: Lowering)
  Type type = value.type();
  int64_t count = 1;
  for (int64_t dim : type.dims)
    count *= std::max<int64_t>(dim, dim < 0 ? 1 : 0);
  if (is_bf16 && type.dtype == TN_F32 && count >= kSmall && !value.is_output()) return 2 * count;
  return type.dtype == TN_DTYPE_NONE ? 0 : static_cast<int64_t>(tenon::bytes_of(type.dtype, count));
}

int64_t Sizes::peak(const Graph& graph) const {
  std::vector<Node> nodes = graph.nodes();
  std::unordered_map<tn_value_id, size_t> last;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (Value input : nodes[i].inputs())
      if (input) last[base_of(input).id] = i;
  for (Value output : graph.outputs())
    last[base_of(output).id] = nodes.size();
  std::vector<int64_t> change(nodes.size() + 2);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (Value output : nodes[i].outputs()) {
      if (!output || base_of(output) != output) continue;
      auto found = last.find(output.id);
      change[i] += of(output);
      change[(found == last.end() ? i : found->second) + 1] -= of(output);
    }
  }
  int64_t alive = 0, most = 0;
  for (int64_t by : change)
    most = std::max(most, alive += by);
  return most;
}

}  // namespace tenon::autodiff
