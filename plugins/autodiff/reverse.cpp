// SPDX-License-Identifier: Apache-2.0
#include "reverse.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "joint.hpp"
#include "rules.hpp"

namespace tenon::autodiff {
namespace {

constexpr int kMaxExpansions = 100000;  // rows that decompose into each other

bool feeds_on(Node node, const Active& active) {
  std::vector<Value> outputs = node.outputs();
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](Value v) { return v && active.count(v.id) > 0; });
}

std::vector<Value> chosen_outputs(const EditView& edit, const std::vector<uint64_t>& which) {
  std::vector<Value> all = edit.graph().outputs(), out;
  for (uint64_t i : which)
    out.push_back(all[i]);
  return out;
}

// Takes composite nodes on the way apart until none is left.
Status expand(const EditView& edit, const Request& request) {
  for (int n = 0;;) {
    std::vector<Node> nodes = nodes_behind(chosen_outputs(edit, request.outputs));
    Active active = depending(nodes, request.wrt);
    bool changed = false;
    for (Node node : nodes) {
      if (!feeds_on(node, active) || !is_composite(node)) continue;
      if (++n > kMaxExpansions) return invalid(described(node) + ": decompositions never end");
      TN_CHECK(Status(services.op->decompose(edit.raw, node.id)).in(described(node)));
      changed = true;
    }
    if (!changed) return {};
  }
}

bool same_dim(const Type& a, const Type& b, size_t i, size_t j) {
  if (a.dims[i] >= 0 || b.dims[j] >= 0) return a.dims[i] == b.dims[j];
  return !a.symbols.empty() && !b.symbols.empty() && !a.symbols[i].empty() &&
         a.symbols[i] == b.symbols[j];
}
bool same_shape(const Type& a, const Type& b) {
  if (!a.ranked || !b.ranked || a.rank() != b.rank()) return false;
  for (size_t i = 0; i < a.rank(); ++i)
    if (!same_dim(a, b, i, i)) return false;
  return true;
}

// What came for each value, summed when it is asked for: parts of one shape are added before they
// are reduced to the shape of the value, so broadcasts are summed once.
class Sums {
 public:
  explicit Sums(Builder& b) : b_(b) {}
  void give(Value value, Value part) { parts_[value.id].push_back(part); }
  Value total(Value value) {
    if (auto asked = totals_.find(value.id); asked != totals_.end()) return asked->second;
    auto found = parts_.find(value.id);
    if (found == parts_.end()) return {};
    std::vector<std::pair<Type, Value>> groups;
    for (Value part : found->second) {
      if (is_float(value.dtype())) part = b_.cast(part, value.dtype());
      Type type = part.type();
      auto same = std::find_if(groups.begin(), groups.end(),
                               [&](auto& group) { return same_shape(group.first, type); });
      if (same == groups.end())
        groups.emplace_back(type, part);
      else
        same->second = b_.add(same->second, part);
    }
    Value sum;
    for (auto& [type, part] : groups) {
      Value reduced = sum_to(b_, part, value);
      sum = sum ? b_.add(sum, reduced) : reduced;
    }
    parts_.erase(found);
    return totals_[value.id] = sum;
  }

 private:
  Builder& b_;
  std::unordered_map<tn_value_id, std::vector<Value>> parts_;
  std::unordered_map<tn_value_id, Value> totals_;  // nothing comes once one was asked for
};

Status backward(const EditView& edit, Node node, const Active& active, Sums& sums) {
  std::vector<Value> cotangents, inputs = node.inputs();
  bool any = false;
  for (Value output : node.outputs()) {
    cotangents.push_back(output && active.count(output.id) ? sums.total(output) : Value{});
    any = any || cotangents.back();
  }
  if (!any) return {};
  std::vector<uint8_t> wanted;
  for (Value input : inputs)
    wanted.push_back(input && active.count(input.id) > 0);
  std::vector<tn_value_id> gradients;
  TN_CHECK(differentiate(edit, node, cotangents, wanted, gradients));
  for (size_t i = 0; i < gradients.size(); ++i)
    if (wanted[i] && gradients[i] != 0) sums.give(inputs[i], edit.value(gradients[i]));
  return {};
}

// For each node the values of which it is the first reader: when its turn comes, last of their
// readers, all that comes for them is there.
std::vector<std::vector<Value>> by_first_reader(const std::vector<Node>& nodes,
                                                const std::vector<Value>& values,
                                                const Active& active) {
  std::unordered_map<tn_value_id, size_t> first;
  for (size_t i = nodes.size(); i-- > 0;)
    if (feeds_on(nodes[i], active))
      for (Value input : nodes[i].inputs())
        if (input) first[input.id] = i;
  std::vector<std::vector<Value>> out(nodes.size());
  for (Value value : values)
    if (auto found = first.find(value.id); found != first.end())
      out[found->second].push_back(value);
  return out;
}

}  // namespace

Value sum_to(Builder& b, Value value, Value like) {
  Type from = value.type(), to = like.type();
  if (same_shape(from, to)) return value;
  if (!from.ranked || !to.ranked || from.rank() < to.rank()) {
    Node node = b.node({.type = "SumTo", .inputs = {value, b.shape_of(like)}, .domain = "tenon"});
    return node ? node.output() : Value{};
  }
  size_t extra = from.rank() - to.rank();
  std::vector<int64_t> leading, inner;
  for (size_t i = 0; i < from.rank(); ++i) {
    if (i < extra) {
      leading.push_back(static_cast<int64_t>(i));
    } else if (!same_dim(from, to, i, i - extra)) {
      if (to.dims[i - extra] == 1) {
        inner.push_back(static_cast<int64_t>(i));
        continue;
      }
      Node node = b.node({.type = "SumTo", .inputs = {value, b.shape_of(like)}, .domain = "tenon"});
      return node ? node.output() : Value{};
    }
  }
  if (!inner.empty()) value = b.sum(value, inner);
  return leading.empty() ? value : b.sum(value, leading, false);
}

Active depending(const std::vector<Node>& nodes, const std::vector<Value>& wrt) {
  Active active;
  for (Value value : wrt)
    active.insert(value.id);
  for (Node node : nodes) {
    if (stops_gradients(node)) continue;
    std::vector<Value> inputs = node.inputs();
    bool reached = std::any_of(inputs.begin(), inputs.end(),
                               [&](Value v) { return v && active.count(v.id) > 0; });
    for (Value output : node.outputs())
      if (reached && output && carries_gradient(node, output)) active.insert(output.id);
  }
  return active;
}

std::string described(Node node) {
  std::string domain(node.domain());
  return cat("operator ", domain.empty() ? "" : domain + ":", node.type(), " (node ", node.name(),
             ")");
}

Result<std::vector<Value>> reverse(const EditView& edit, const Request& request) {
  TN_CHECK(expand(edit, request));
  std::vector<Value> outputs = chosen_outputs(edit, request.outputs);
  std::vector<Node> nodes = nodes_behind(outputs);
  Active active = depending(nodes, request.wrt);
  Builder builder(edit);
  Sums sums(builder);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!request.cotangents[i] || !active.count(outputs[i].id)) continue;
    TN_CHECK(edit.set_note(request.cotangents[i].id, kSeedNote, any_int(1)));
    sums.give(outputs[i], request.cotangents[i]);
  }
  const auto complete = by_first_reader(nodes, request.wrt, active);
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!feeds_on(nodes[i], active)) continue;
    // Gradients belong to the part of the model that they are of.
    std::string scope(nodes[i].scope());
    TN_CHECK(services.edit->set_scope(edit.raw, 0, str(scope)));
    Status failed = backward(edit, nodes[i], active, sums);
    // What is summed over a broadcast is large, and does not wait in memory for the end.
    for (Value value : complete[i])
      sums.total(value);
    TN_CHECK(services.edit->set_scope(edit.raw, 0, {}));
    TN_CHECK(std::move(failed));
  }
  std::vector<Value> gradients;
  for (Value value : request.wrt)
    gradients.push_back(sums.total(value));
  TN_CHECK(builder.status());
  return gradients;
}

}  // namespace tenon::autodiff
