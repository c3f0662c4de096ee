// SPDX-License-Identifier: Apache-2.0
#include "layer_regions.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "tenon/role/op.h"

namespace tenon::trainer {
namespace {

using Nodes = std::unordered_set<tn_node_id>;

// Parts of a name are parted by dots or slashes; exporters write one in front.
std::string dotted(std::string_view name) {
  std::string out(name.substr(std::min(name.find_first_not_of("./"), name.size())));
  std::replace(out.begin(), out.end(), '/', '.');
  return out;
}

// The layer that this name belongs to; empty: none.
std::string layer_of(const std::string& name, const std::string& pattern) {
  auto ends_part = [&](size_t at) { return at == name.size() || name[at] == '.'; };
  size_t star = pattern.find('*');
  std::string front = pattern.substr(0, star);
  if (!name.starts_with(front)) return "";
  if (star == std::string::npos) return ends_part(front.size()) ? front : std::string();
  size_t end = std::min(name.find('.', front.size()), name.size());
  std::string tail = pattern.substr(star + 1);
  if (end == front.size() || !name.substr(end).starts_with(tail)) return "";
  return ends_part(end + tail.size()) ? name.substr(0, end + tail.size()) : "";
}

std::string layer_of(Node node, const std::string& pattern) {
  for (std::string_view name : {node.scope(), node.name()})
    if (std::string found = layer_of(dotted(name), dotted(pattern)); !found.empty()) return found;
  return "";
}

bool is_read_outside(Value value, const Nodes& inside) {
  if (value.is_output()) return true;
  for (uint64_t i = 0; i < value.consumer_count(); ++i)
    if (!inside.contains(value.consumer(i).id)) return true;
  return false;
}

// With what lies between them: a Dropout that a pass has rewritten need not have the layer's name.
std::vector<Node> closed(const std::vector<Node>& order, const Nodes& named) {
  Nodes below, above;
  for (Node node : order) {
    bool follows = named.contains(node.id);
    for (Value in : node.inputs())
      if (Node made = in ? in.producer() : Node{}; made && below.contains(made.id)) follows = true;
    if (follows) below.insert(node.id);
  }
  for (size_t i = order.size(); i-- > 0;) {
    bool leads = named.contains(order[i].id);
    for (Value out : order[i].outputs())
      for (uint64_t k = 0; out && k < out.consumer_count(); ++k)
        if (above.contains(out.consumer(k).id)) leads = true;
    if (leads) above.insert(order[i].id);
  }
  std::vector<Node> out;
  for (Node node : order)
    if (below.contains(node.id) && above.contains(node.id)) out.push_back(node);
  return out;
}

// As its row's expression says it, whoever's operator it is.
bool is_sum(Node node) {
  const tn_op* row = node.row();
  return row && (row->traits & TN_OP_POINTWISE) && view(row->expr) == "x + y" &&
         node.n_inputs() == 2;
}

// A region that grows from the nodes of a layer to the residual sum that ends it.
class Growth {
 public:
  Growth(const std::vector<Node>& order, Nodes named, const Nodes& of_others)
      : order_(order), inside_(std::move(named)), of_others_(of_others) {
    close();
  }

  Status run(LayerRegion& region) {
    std::vector<Value> left = results();
    while (left.size() != 1 || around(left[0]).empty()) {
      Node next = reader(left);
      if (!next) return refusal(region.name, left);
      inside_.insert(next.id);
      close();
      left = results();
    }
    region.nodes = nodes_;
    region.result = left[0];
    const std::vector<Value> found = around(left[0]);
    if (found.size() > 1)
      return unsupported(cat("layer ", region.name, " cannot be left out: ", found[0].name(),
                             " and ", found[1].name(),
                             " are both added to what it computes: name a smaller layer"));
    region.around = found[0];
    return {};
  }

 private:
  void close() {
    nodes_ = closed(order_, inside_);
    for (Node node : nodes_)
      inside_.insert(node.id);
  }
  std::vector<Value> results() const {
    std::vector<Value> out;
    for (Node node : nodes_)
      for (Value value : node.outputs())
        if (value && is_read_outside(value, inside_)) out.push_back(value);
    return out;
  }
  bool is_made_inside(Value value) const {
    return value.producer() && inside_.contains(value.producer().id);
  }
  // What enters the region, is of the result's type and is added to what the region computes: a
  // residual connection. More than one: it cannot be said which of them the layer changes.
  std::vector<Value> around(Value result) const {
    std::vector<Value> out;
    Type of = result.type();
    for (Node node : nodes_) {
      if (!is_sum(node)) continue;
      for (uint64_t i : {0, 1}) {
        Value in = node.input(i);
        Type type = in.type();
        bool enters = !in.is_constant() && !is_made_inside(in) && is_made_inside(node.input(1 - i));
        bool fits = type.ranked && type.dtype == of.dtype && type.dims == of.dims;
        if (enters && fits && std::find(out.begin(), out.end(), in) == out.end()) out.push_back(in);
      }
    }
    return out;
  }
  // The first node that reads what leaves the region, where that is no other layer's.
  Node reader(const std::vector<Value>& values) const {
    for (Node node : order_) {
      if (inside_.contains(node.id)) continue;
      for (Value value : values)
        for (uint64_t i = 0; i < value.consumer_count(); ++i)
          if (value.consumer(i) == node) return of_others_.contains(node.id) ? Node{} : node;
    }
    return {};
  }
  static Status refusal(const std::string& name, const std::vector<Value>& left) {
    std::string report;
    for (Value value : left)
      report += cat(report.empty() ? "" : ", ", value.name());
    return unsupported(
        cat("layer ", name, " cannot be left out: expected a residual sum that ends ",
            "it, and one result; what leaves it is ", report.empty() ? "nothing" : report,
            "; BatchNormalization leaves statistics as well: batch_norm = frozen, or ",
            "another normalization"));
  }

  const std::vector<Node>& order_;
  Nodes inside_;
  const Nodes& of_others_;
  std::vector<Node> nodes_;
};

}  // namespace

Result<std::vector<LayerRegion>> layer_regions(Graph graph,
                                               const std::vector<std::string>& patterns) {
  std::vector<Node> order = graph.nodes();
  std::vector<std::string> names;
  std::map<std::string, Nodes> found;
  for (const std::string& pattern : patterns) {
    bool means_any = false;
    for (Node node : order) {
      std::string name = layer_of(node, pattern);
      if (name.empty()) continue;
      means_any = true;
      if (!found.contains(name)) names.push_back(name);
      found[name].insert(node.id);
    }
    if (!means_any)
      return invalid(
          cat("option layers: expected names or scopes of nodes, with * for one part "
              "of a name, got '",
              pattern, "', which fits none"));
  }
  std::vector<LayerRegion> out;
  Nodes taken;
  for (const std::string& name : names) {
    Nodes others;
    for (const auto& [other, nodes] : found)
      if (other != name) others.insert(nodes.begin(), nodes.end());
    LayerRegion region{name, {}, {}, {}};
    TN_CHECK(Growth(order, found[name], others).run(region));
    for (Node node : region.nodes)
      if (!taken.insert(node.id).second)
        return invalid(cat("option layers: ", name, " and another layer share node ", node.name(),
                           ": name each layer once"));
    out.push_back(std::move(region));
  }
  return out;
}

}  // namespace tenon::trainer
