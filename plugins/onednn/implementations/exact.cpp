// SPDX-License-Identifier: Apache-2.0
#include "exact.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "tenon/sdk/backend/program.hpp"

#include "dense.hpp"
#include "kernels/exact.h"
#include "lowering/epilogue.hpp"
#include "lowering/pointwise_group.hpp"

namespace tenon::onednn {
namespace {

constexpr int kReach = 32;            // nodes looked at behind the first
constexpr size_t kMostOperands = 16;  // of a group
constexpr size_t kMostProgram = 48;   // nodes whose tiles stay in the second cache

bool is_cast(const Node& node) {
  return node.op == "Cast" || node.op == "CastLike";
}

// How a node computes: what a group has in common.
struct Arithmetic {
  uint32_t domain;
  uint32_t bits;
  bool operator==(const Arithmetic&) const = default;
};
Arithmetic arithmetic_of(const Graph& graph, const Node& node) {
  if (!is_cast(node)) return {node.domain, node.bits};
  const ElementType from = graph.values[node.inputs[0]].type;
  const ElementType to = graph.values[node.outputs[0]].type;
  if (kernels::is_real(from) || kernels::is_real(to)) return {TN_EXPR_DOMAIN_FLOAT, 64};
  const int64_t bytes = std::max(kernels::element_bytes(from), kernels::element_bytes(to));
  const bool is_signed = kernels::visit(from, []<class T>() { return std::is_signed_v<T>; });
  return {is_signed ? TN_EXPR_DOMAIN_INT : TN_EXPR_DOMAIN_UINT, static_cast<uint32_t>(8 * bytes)};
}

// The node's program over its inputs in order; a cast passes its first input on.
std::vector<tn_expr_node> program_of(const Node& node) {
  if (is_cast(node)) return {{TN_EXPR_INPUT, 0, 0, 0, 0}};
  return node.expr;
}

// How an input lies over the dimensions of the result.
kernels::ExactEdge edge_of(const View& view, const Dims& dims) {
  return {view.type, broadcast_strides(view, dims)};
}

// A constant of one number, which is part of the program; integers as far as f64 has all of them.
std::optional<double> number_of(const Value& value) {
  if (value.data == nullptr || value.count() != 1) return std::nullopt;
  if (value.type == ElementType::kF64) return *static_cast<const double*>(value.data);
  if (value.type > ElementType::kU64 || kernels::is_real(value.type)) return std::nullopt;
  const double number = kernels::visit(value.type, [&]<class T>() {
    return static_cast<double>(*static_cast<const T*>(value.data));
  });
  return std::fabs(number) < 0x1p53 ? std::optional(number) : std::nullopt;
}

// Whether a pointwise node is of Booleans alone.
bool is_logic(const Graph& graph, const Node& node) {
  if (is_cast(node) || node.expr.empty() || !is_pointwise(graph, node)) return false;
  const auto is_bool = [&](int value) {
    return value == kNone || graph.values[value].type == ElementType::kBool;
  };
  return std::ranges::all_of(node.inputs, is_bool) && std::ranges::all_of(node.outputs, is_bool);
}

// Nodes of one shape and arithmetic that read one another, as one pass over memory. What nothing
// else reads is not stored.
class ExactGroup {
 public:
  ExactGroup(Lowering& lowering, int first)
      : lowering_(lowering),
        graph_(lowering.graph()),
        arithmetic_(arithmetic_of(graph_, graph_.nodes[first])),
        dims_(graph_.values[graph_.nodes[first].outputs[0]].dims) {
    add(first);
    if (is_cast(graph_.nodes[first])) return;  // rounds as its type does, between the others
    const int end = std::min<int>(static_cast<int>(graph_.nodes.size()), first + kReach);
    for (int i = first + 1; i < end; ++i)
      if (!lowering_.is_done(i) && fits(i)) add(i);
  }

  void lower();

 private:
  View place_result(int value, const std::vector<View>& inputs);

  bool fits(int index) {
    const Node& node = graph_.nodes[index];
    if (node.expr.empty() || node.outputs.size() != 1 || is_cast(node)) return false;
    const bool is_exact = !is_pointwise(graph_, node) || is_logic(graph_, node);
    if (!is_exact || !refuse_exact(graph_, node).empty()) return false;
    if (arithmetic_of(graph_, node) != arithmetic_) return false;
    if (graph_.values[node.outputs[0]].dims != dims_) return false;
    if (program_.size() + node.expr.size() > kMostProgram) return false;
    if (inputs_.size() + node.inputs.size() > kMostOperands) return false;
    bool reads_group = false;
    for (int input : node.inputs) {
      if (input == kNone) return false;
      const bool is_inside = program_of_.count(input) > 0;
      reads_group = reads_group || (is_inside && graph_.values[input].producer != kNone &&
                                    is_member(graph_.values[input].producer));
      if (!is_inside && !ensure_available(lowering_, input)) return false;
    }
    return reads_group;
  }

  bool is_member(int node) const {
    return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
  }

  uint32_t operand(int value) {
    auto found = program_of_.find(value);
    if (found != program_of_.end()) return found->second;
    if (const std::optional<double> number = number_of(graph_.values[value]))
      return program_of_[value] = program_.number(*number);
    inputs_.push_back(value);
    return program_of_[value] = program_.input(static_cast<uint32_t>(inputs_.size()) - 1);
  }

  void add(int index) {
    const Node& node = graph_.nodes[index];
    nodes_.push_back(index);
    program_of_[node.outputs[0]] =
        program_.append(program_of(node), [&](uint32_t i) { return operand(node.inputs[i]); });
  }

  bool leaves(int value) const {
    const Value& v = graph_.values[value];
    return v.n_outputs > 0 || v.users.empty() ||
           std::any_of(v.users.begin(), v.users.end(), [&](int n) { return !is_member(n); });
  }

  Lowering& lowering_;
  const Graph& graph_;
  const Arithmetic arithmetic_;
  const Dims dims_;
  std::vector<int> nodes_;
  std::vector<int> inputs_;             // values that are read from memory
  std::map<int, uint32_t> program_of_;  // value -> node of the program
  backend::ProgramBuilder program_;
};

// A new state lies over the old one where nothing reads that later, or otherwise than element by
// element.
View ExactGroup::place_result(int value, const std::vector<View>& inputs) {
  View made{.type = graph_.values[value].type, .dims = dims_, .strides = row_major_strides(dims_)};
  const View* state = lowering_.replaced_state(value, nodes_.front());
  auto lies_there = [&](const View& view) {
    return view.offset == 0 && view.type == made.type && view.dims == dims_ &&
           same_strides(dims_, view.strides, made.strides);
  };
  auto is_read_in_step = [&](const View& input) {
    return input.buffer != state->buffer || lies_there(input);
  };
  if (state == nullptr || !lies_there(*state) || !std::ranges::all_of(inputs, is_read_in_step))
    return lowering_.make(value, made.type, made.strides);
  lowering_.plan().first_commit =
      std::min(lowering_.plan().first_commit, lowering_.plan().steps.size());
  made.buffer = state->buffer;
  lowering_.set_view(value, made);
  return made;
}

void ExactGroup::lower() {
  Step step{.kernel = "tenon:exact", .always_succeeds = true};
  std::vector<kernels::ExactEdge> edges;
  std::vector<View> views;
  for (int input : inputs_) {
    View view = lowering_.view(input);
    const ElementType type = graph_.values[input].type;
    if (view.is_quantized() || view.type != type) view = lowering_.read_row_major(input, type);
    edges.push_back(edge_of(view, dims_));
    views.push_back(view);
    step.places.push_back(place_of(view));
    step.bytes += static_cast<double>(view.bytes());
  }
  for (int index : nodes_)
    lowering_.mark_done(index);
  std::vector<kernels::ExactResult> results;
  for (int index : nodes_) {
    const int value = graph_.nodes[index].outputs[0];
    step.name += (step.name.empty() ? "" : "+") + graph_.nodes[index].name;
    if (!leaves(value)) continue;
    const View made = place_result(value, views);
    results.push_back({program_of_[value], made.type});
    step.places.push_back(place_of(made));
    step.bytes += static_cast<double>(made.bytes());
  }
  auto plan = std::make_shared<kernels::ExactPlan>();
  const std::string why = plan->make({.nodes = program_.nodes(),
                                      .domain = arithmetic_.domain,
                                      .bits = arithmetic_.bits,
                                      .dims = dims_,
                                      .inputs = edges,
                                      .results = results});
  if (!why.empty()) throw CompileError(step.name + ": " + why);
  step.flops = static_cast<double>(element_count(dims_)) * static_cast<double>(program_.size());
  step.kernel_function = [plan, n = inputs_.size()](const kernels::Context& context,
                                                    void* const* pointers) -> const char* {
    plan->run(context, pointers, pointers + n);
    return nullptr;
  };
  lowering_.add_step(std::move(step));
}

// Whether floating-point numbers could be computed in one pass with the node's result, directly or
// behind more logic; looked at so many nodes deep.
bool joins_reals(const Graph& graph, const Node& node, int depth = 6) {
  const Value& made = graph.values[node.outputs[0]];
  return std::ranges::any_of(made.users, [&](int user) {
    const Node& reader = graph.nodes[user];
    if (!is_pointwise(graph, reader) || graph.values[reader.outputs[0]].dims != made.dims)
      return false;
    return !is_logic(graph, reader) || depth == 0 || joins_reals(graph, reader, depth - 1);
  });
}

}  // namespace

std::string refuse_logic(const Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  if (!is_logic(graph, node) || !refuse_exact(graph, node).empty()) return "not of Booleans alone";
  const bool are_ordered = std::ranges::all_of(
      node.inputs, [&](int input) { return input == kNone || is_row_major(lowering.view(input)); });
  if (!are_ordered) return "its operands are not row-major";
  return joins_reals(graph, node) ? "floating-point nodes of its shape read it" : "";
}

std::string refuse_exact(const Graph& graph, const Node& node) {
  if (!is_cast(node) && node.expr.empty()) return "no expression for these types";
  const Value& made = graph.values[node.outputs[0]];
  std::vector<kernels::ExactEdge> edges;
  for (int input : node.inputs) {
    const ElementType type = input == kNone ? ElementType::kI64 : graph.values[input].type;
    edges.push_back({type, Dims(made.dims.size(), 0)});
    if (is_cast(node)) break;
  }
  const std::vector<tn_expr_node> program = program_of(node);
  const auto [domain, bits] = arithmetic_of(graph, node);
  const kernels::ExactResult result = {static_cast<uint32_t>(program.size()) - 1, made.type};
  return kernels::ExactPlan().make({.nodes = program,
                                    .domain = domain,
                                    .bits = bits,
                                    .dims = made.dims,
                                    .inputs = edges,
                                    .results = {&result, 1}});
}

void lower_exact(Lowering& lowering, int index) {
  ExactGroup(lowering, index).lower();
}

}  // namespace tenon::onednn
