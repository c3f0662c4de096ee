// SPDX-License-Identifier: Apache-2.0
#include "exact.hpp"

#include "dense.hpp"
#include "kernels/exact.h"

namespace tenon::onednn {
namespace {

bool is_cast(const Node& node) {
  return node.op == "Cast" || node.op == "CastLike";
}

// The node's program over its inputs in order; a cast passes its first input on.
struct Program {
  std::vector<tn_expr_node> nodes;
  uint32_t domain;
  uint32_t bits;
};
Program program_of(const Graph& graph, const Node& node) {
  if (!is_cast(node)) return {node.expr, node.domain, node.bits};
  bool has_reals = kernels::is_real(graph.values[node.inputs[0]].type) ||
                   kernels::is_real(graph.values[node.outputs[0]].type);
  uint32_t domain = has_reals ? TN_EXPR_DOMAIN_FLOAT : TN_EXPR_DOMAIN_INT;
  return {{{TN_EXPR_INPUT, 0, 0, 0, 0}}, domain, 64};
}

std::string make_plan(const Graph& graph,
                      const Node& node,
                      const std::vector<View>& inputs,
                      kernels::ExactPlan* plan) {
  Program program = program_of(graph, node);
  const Value& value = graph.values[node.outputs[0]];
  std::vector<kernels::ExactEdge> edges;
  for (const View& view : inputs) {
    Dims strides(value.dims.size(), 0);
    size_t shift = value.dims.size() - view.dims.size();
    for (size_t i = 0; i < view.dims.size(); ++i)
      strides[i + shift] = view.dims[i] == 1 ? 0 : view.strides[i];
    edges.push_back({view.type, strides});
  }
  return plan->make({.nodes = program.nodes,
                     .domain = program.domain,
                     .bits = program.bits,
                     .dims = value.dims,
                     .inputs = edges,
                     .output = value.type});
}

}  // namespace

std::string refuse_exact(const Graph& graph, const Node& node) {
  if (!is_cast(node) && node.expr.empty()) return "no expression for these types";
  std::vector<View> inputs;
  for (int input : node.inputs) {
    if (input == kNone) {
      inputs.emplace_back();
      continue;
    }
    const Value& value = graph.values[input];
    inputs.push_back(
        {.type = value.type, .dims = value.dims, .strides = row_major_strides(value.dims)});
    if (is_cast(node)) break;
  }
  kernels::ExactPlan plan;
  return make_plan(graph, node, inputs, &plan);
}

void lower_exact(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  Step step{.name = node.name, .kernel = "tenon:exact"};
  std::vector<View> inputs;
  for (int input : node.inputs) {
    if (input == kNone) {
      inputs.emplace_back();
      step.places.push_back({});
      continue;
    }
    View view = lowering.view(input);
    ElementType type = graph.values[input].type;
    if (view.is_quantized() || view.type != type) view = lowering.read_row_major(input, type);
    inputs.push_back(view);
    step.places.push_back(place_of(view));
    step.bytes += static_cast<double>(view.bytes());
    if (is_cast(node)) break;
  }
  auto plan = std::make_shared<kernels::ExactPlan>();
  std::string why = make_plan(graph, node, inputs, plan.get());
  if (!why.empty()) throw CompileError(node.name + ": " + why);
  const Value& value = graph.values[node.outputs[0]];
  View made = lowering.make(node.outputs[0], value.type, row_major_strides(value.dims));
  step.places.push_back(place_of(made));
  step.bytes += static_cast<double>(made.bytes());
  step.flops = static_cast<double>(value.count() * static_cast<int64_t>(node.expr.size()));
  size_t n = inputs.size();
  step.kernel_function = [plan, n](const kernels::Context& context,
                                   void* const* pointers) -> const char* {
    plan->run(context, pointers, pointers[n]);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

}  // namespace tenon::onednn
