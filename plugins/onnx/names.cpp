// SPDX-License-Identifier: Apache-2.0
#include "names.hpp"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "attributes.hpp"

namespace tenon::onnx_plugin {
namespace {

void for_each_use(const onnx::NodeProto& node, const std::function<void(const std::string&)>& use) {
  for (const std::string& name : node.input())
    if (!name.empty()) use(name);
  for (const onnx::AttributeProto* body : bodies_of(node))
    for (const std::string& name : free_names(body->g()))
      use(name);
}

}  // namespace

std::vector<const onnx::AttributeProto*> bodies_of(const onnx::NodeProto& node) {
  std::vector<const onnx::AttributeProto*> out;
  for (const onnx::AttributeProto& attr : node.attribute())
    if (type_of(attr) == onnx::AttributeProto::GRAPH) out.push_back(&attr);
  std::sort(out.begin(), out.end(), [](auto* a, auto* b) { return a->name() < b->name(); });
  return out;
}

bool counts_outputs(std::string_view domain, std::string_view type, bool has_bodies) {
  return has_bodies || (domain.empty() && type == "Split");
}

std::vector<std::string> free_names(const onnx::GraphProto& body) {
  std::unordered_set<std::string> seen;
  for (const auto& input : body.input())
    seen.insert(input.name());
  for (const auto& tensor : body.initializer())
    seen.insert(tensor.name());
  for (const auto& tensor : body.sparse_initializer())
    seen.insert(tensor.values().name());
  for (const auto& node : body.node())
    seen.insert(node.output().begin(), node.output().end());
  std::vector<std::string> out;
  auto use = [&](const std::string& name) {
    if (seen.insert(name).second) out.push_back(name);
  };
  for (const auto& node : body.node())
    for_each_use(node, use);
  for (const auto& output : body.output())
    use(output.name());
  return out;
}

std::string node_text(const onnx::NodeProto& node, int index) {
  std::string name = node.name().empty() ? cat(index) : node.name();
  return cat("node ", name, " (", node.op_type(), ")");
}

Result<std::vector<int>> node_order(const Nodes& nodes) {
  std::unordered_map<std::string, int> maker;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string& name : nodes[i].output())
      if (!name.empty()) maker.emplace(name, i);
  std::vector<std::vector<int>> users(static_cast<size_t>(nodes.size()));
  std::vector<int> waits(users.size());
  bool sorted = true;
  for (int i = 0; i < nodes.size(); ++i) {
    for_each_use(nodes[i], [&](const std::string& name) {
      auto made = maker.find(name);
      if (made == maker.end()) return;
      users[static_cast<size_t>(made->second)].push_back(i);
      ++waits[static_cast<size_t>(i)];
      sorted &= made->second < i;
    });
  }
  std::vector<int> order;
  if (sorted) {
    for (int i = 0; i < nodes.size(); ++i)
      order.push_back(i);
    return order;
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (waits[static_cast<size_t>(i)] == 0) ready.push(i);
  while (!ready.empty()) {
    int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (int user : users[static_cast<size_t>(next)])
      if (--waits[static_cast<size_t>(user)] == 0) ready.push(user);
  }
  for (int i = 0; i < nodes.size(); ++i)
    if (waits[static_cast<size_t>(i)] > 0)
      return invalid(cat(node_text(nodes[i], i),
                         ": it needs its own output, or that of a node that "
                         "does (the graph has a cycle)"));
  return order;
}

}  // namespace tenon::onnx_plugin
