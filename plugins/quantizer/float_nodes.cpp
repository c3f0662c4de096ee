// SPDX-License-Identifier: Apache-2.0
#include "float_nodes.hpp"

#include <unordered_set>

namespace tenon::quantizer {

bool holds_floats(Value v) {
  return v && (v.dtype() == TN_F32 || v.dtype() == TN_F64 || v.dtype() == TN_F16 ||
               v.dtype() == TN_BF16);
}

std::vector<Node> floats_between(Graph graph) {
  std::vector<Node> nodes = graph.nodes(), found;
  std::unordered_set<tn_value_id> stored, wanted;
  for (Node node : nodes) {
    bool is_behind = node.is("QuantizeLinear") && !node.input(0).is_constant();
    for (Value v : node.inputs())
      is_behind |= v && stored.contains(v.id);
    for (Value v : node.outputs())
      if (is_behind && v) stored.insert(v.id);
  }
  std::unordered_set<tn_node_id> inside;
  for (size_t i = nodes.size(); i-- > 0;) {
    bool is_wanted = nodes[i].is("DequantizeLinear");
    bool leads = false;
    for (Value v : nodes[i].outputs())
      leads |= v && wanted.contains(v.id);
    if (leads) inside.insert(nodes[i].id);
    if (!is_wanted && !leads) continue;
    for (Value v : nodes[i].inputs())
      if (v) wanted.insert(v.id);
  }
  for (Node node : nodes) {
    bool reads_stored = false, has_floats = false;
    for (Value v : node.inputs()) {
      reads_stored |= v && stored.contains(v.id);
      has_floats |= holds_floats(v);
    }
    for (Value v : node.outputs())
      has_floats |= holds_floats(v);
    if (inside.contains(node.id) && reads_stored && has_floats) found.push_back(node);
  }
  return found;
}

nlohmann::ordered_json named(const std::vector<Node>& nodes) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (Node node : nodes)
    out.push_back({{"node", node.name()}, {"op", node.type()}});
  return out;
}

std::string first_names(const std::vector<Node>& nodes) {
  std::string text;
  for (size_t i = 0; i < nodes.size() && i < 5; ++i)
    text += cat(i > 0 ? ", " : "", nodes[i].name(), " (", nodes[i].type(), ")");
  return nodes.size() > 5 ? cat(text, " and ", nodes.size() - 5, " more") : text;
}

}  // namespace tenon::quantizer
