// SPDX-License-Identifier: Apache-2.0
// Bodies of If, Loop, Scan: graphs of their own. What they take by name from around them becomes
// trailing inputs of the node and of each body; constants are shared instead.
#include <algorithm>

#include "importer.hpp"

namespace tenon::onnx_plugin {
namespace {

std::vector<const onnx::AttributeProto*> graphs_of(const Draft& node) {
  std::vector<const onnx::AttributeProto*> out;
  for (const onnx::AttributeProto& attr : node.attrs)
    if (type_of(attr) == onnx::AttributeProto::GRAPH) out.push_back(&attr);
  std::sort(out.begin(), out.end(), [](auto* a, auto* b) { return a->name() < b->name(); });
  return out;
}

}  // namespace

Status Importer::bodies(const Draft& node,
                        const Frame& frame,
                        AttrStore& store,
                        std::vector<Value>& inputs) {
  std::vector<const onnx::AttributeProto*> graphs = graphs_of(node);
  if (graphs.empty()) return {};
  Captures captures;
  int64_t n_captured = 0;
  for (const onnx::AttributeProto* attr : graphs) {
    for (const std::string& name : free_names(attr->g())) {
      bool known = std::any_of(captures.begin(), captures.end(),
                               [&](const auto& capture) { return capture.first == name; });
      if (known) continue;
      auto at = frame.values.find(name);
      if (at == frame.values.end())
        return invalid(cat("body ", attr->name(), ": expected the name of a value, got ", name,
                           ", which nothing makes"));
      captures.emplace_back(name, at->second);
      if (!at->second || at->second.is_constant()) continue;
      inputs.push_back(at->second);
      ++n_captured;
    }
  }
  if (n_captured > 0) store.add_int("captures", n_captured);
  for (const onnx::AttributeProto* attr : graphs) {
    Result<OwnedGraph> made = body(attr->g(), node.inputs, captures, frame);
    if (!made.ok()) return std::move(made).status().in(cat("body ", attr->name()));
    store.add_body(attr->name(), std::move(*made));
  }
  return {};
}

Result<OwnedGraph> Importer::body(const Graph& graph,
                                  const std::vector<Value>& operands,
                                  const Captures& captures,
                                  const Frame& around) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->create(files_.ctx(), &raw));
  OwnedGraph made = OwnedGraph::take(raw);
  TN_TRY(edit, Edit::begin(raw));
  Frame frame;
  frame.opsets = around.opsets;
  frame.arguments = around.arguments;
  frame.value_info = &graph.value_info();
  frame.prefix = around.prefix;
  frame.scope = around.scope;
  frame.call_depth = around.call_depth;
  TN_CHECK(versions(edit));
  TN_CHECK(inputs(edit, graph, operands, frame));
  for (const auto& [name, outer] : captures) {
    if (!outer) {  // an optional input that the call of a function leaves out
      frame.values.emplace(name, Value());
      continue;
    }
    if (outer.is_constant()) {
      TN_TRY(value, edit.constant(outer.constant(), outer.name()));
      frame.values.emplace(name, value);
      continue;
    }
    std::string inner(outer.name());
    while (edit.graph().find(inner))
      inner += "_captured";
    TN_TRY(value, edit.input(inner, outer.type()));
    frame.values.emplace(name, value);
  }
  TN_CHECK(initializers(edit, graph, frame));
  TN_CHECK(nodes(edit, graph.node(), frame));
  TN_CHECK(outputs(edit, graph, frame));
  TN_CHECK(edit.commit());
  return made;
}

}  // namespace tenon::onnx_plugin
