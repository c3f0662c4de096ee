// SPDX-License-Identifier: Apache-2.0
#include "groups.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "pivots.hpp"
#include "rules.hpp"

namespace tenon::pruner {
namespace {

void keep_world(Graph graph, Couplings& couplings) {
  std::vector<Value> inputs = graph.inputs(), outputs = graph.outputs();
  for (size_t i = 0; i < inputs.size(); ++i)
    couplings.protect_all(inputs[i], cat("it is of the model's input ", graph.input_name(i)));
  for (size_t i = 0; i < outputs.size(); ++i)
    couplings.protect_all(outputs[i], cat("it is of the model's output ", graph.output_name(i)));
  for (Value constant : graph.constants())
    if (TN_DTYPE_BITS(constant.dtype()) % 8 != 0)
      couplings.protect_all(constant, cat(constant.name(), " is stored in less than bytes"));
}

// The value that a node multiplies a constant with along this axis, and its own axis for that: the
// one whose entries are the same channels. The axis of a grouped product is as long as all groups.
std::pair<Value, size_t> multiplied_with(const Couplings& couplings, const Slot& reads) {
  for (Value value : reads.user.inputs()) {
    if (!value || value.is_constant() || !value.type().ranked) continue;
    for (size_t axis = 0; axis < value.type().rank(); ++axis) {
      int number = couplings.known_slot(value, axis);
      if (number == kNoSlot) continue;
      const Slot& slot = couplings.slots()[static_cast<size_t>(number)];
      bool fits = reads.size > 0 && slot.size >= reads.size && slot.size % reads.size == 0;
      for (int64_t i = 0; fits && i < reads.size; ++i)
        fits = couplings.find(slot.first + i) == couplings.find(reads.first + i);
      if (fits) return {value, axis};
    }
  }
  return {};
}

}  // namespace

Groups Groups::of(Graph graph) {
  PivotSearch search;
  while (true) {
    Groups out = with(graph, search.pivots());
    if (!search.advance(out)) return out;
  }
}

Groups Groups::with(Graph graph, const Pivots& pivots) {
  Groups out;
  out.couplings_ = Couplings(pivots);
  keep_world(graph, out.couplings_);
  for (Node node : graph.nodes())
    couple(node, out.couplings_);
  out.couplings_.finish();
  out.collect();
  out.collect_members();
  out.collect_weights();
  return out;
}

// A channel is a class of atoms that some weight makes and nothing protects; channels of one group
// lie in the same slots.
void Groups::collect() {
  const std::vector<Slot>& slots = couplings_.slots();
  std::unordered_map<int64_t, std::vector<int>> channels;  // root -> slots
  for (const Slot& slot : slots) {
    if (slot.kind != Kind::kMakes || !is_float(slot.value.dtype())) continue;
    std::map<std::string, int64_t> kept;  // why -> entries
    for (int64_t i = 0; i < slot.size; ++i) {
      int64_t root = couplings_.find(slot.first + i);
      const std::string* why = couplings_.why_kept(root);
      if (why) ++kept[*why];
      if (!why) channels.try_emplace(root);
    }
    for (const auto& [why, count] : kept)
      barriers_.push_back({slot.user, slot.value, static_cast<size_t>(slot.axis), count, why});
  }
  std::vector<int64_t> order;  // of first appearance
  for (size_t s = 0; s < slots.size(); ++s) {
    if (!slots[s].value) continue;
    for (int64_t i = 0; i < slots[s].size; ++i) {
      int64_t root = couplings_.find(slots[s].first + i);
      auto at = channels.find(root);
      if (at == channels.end()) continue;
      if (at->second.empty()) order.push_back(root);
      if (at->second.empty() || at->second.back() != static_cast<int>(s))
        at->second.push_back(static_cast<int>(s));
    }
  }
  std::map<std::vector<int>, size_t> by_slots;
  for (int64_t root : order) {
    auto [at, fresh] = by_slots.try_emplace(channels[root], groups_.size());
    if (fresh) groups_.emplace_back();
    groups_[at->second].roots.push_back(root);
  }
  for (const auto& [where, number] : by_slots) {
    for (int s : where) {
      const Slot& slot = slots[static_cast<size_t>(s)];
      if (!slot.value.is_constant()) continue;
      Member member{slot.value, static_cast<size_t>(slot.axis), slot.kind, slot.user, 1, 1, 1, {}};
      groups_[number].members.push_back(std::move(member));
    }
  }
}

void Groups::collect_members() {
  for (Group& group : groups_) {
    std::unordered_map<int64_t, int64_t> number;
    for (size_t c = 0; c < group.roots.size(); ++c)
      number[group.roots[c]] = static_cast<int64_t>(c);
    for (Member& member : group.members) {
      std::vector<int64_t> dims = member.value.type().dims;
      for (size_t i = 0; i < dims.size(); ++i) {
        auto dim = static_cast<uint64_t>(dims[i]);
        (i < member.axis ? member.outer : i == member.axis ? member.extent : member.inner) *= dim;
      }
      const Slot& slot =
          couplings_.slots()[static_cast<size_t>(couplings_.slot(member.value, member.axis))];
      for (int64_t i = 0; i < slot.size; ++i) {
        auto at = number.find(couplings_.find(slot.first + i));
        member.channel.push_back(at == number.end() ? -1 : at->second);
      }
      if (member.kind != Kind::kMakes) continue;
      if (group.makers.empty()) {
        group.layer = member.node.name();
        group.width = std::count(member.channel.begin(), member.channel.end(), 0);
      }
      if (std::find(group.makers.begin(), group.makers.end(), member.node) == group.makers.end())
        group.makers.push_back(member.node);
    }
    collect_activations(group);
  }
}

void Groups::collect_activations(Group& group) {
  std::unordered_map<int64_t, int64_t> number;
  for (size_t c = 0; c < group.roots.size(); ++c)
    number[group.roots[c]] = static_cast<int64_t>(c);
  for (const Member& member : group.members) {
    if (member.kind != Kind::kReads) continue;
    int reads = couplings_.slot(member.value, member.axis);
    auto [value, axis] =
        multiplied_with(couplings_, couplings_.slots()[static_cast<size_t>(reads)]);
    bool is_new = value && std::ranges::count(group.activations, value, &Member::value) == 0;
    if (!is_new) continue;
    Member made{value, axis, Kind::kNone, value.producer(), 1, 1, 1, {}};
    const Slot& slot = couplings_.slots()[static_cast<size_t>(couplings_.slot(value, axis))];
    for (int64_t i = 0; i < slot.size; ++i) {
      auto at = number.find(couplings_.find(slot.first + i));
      made.channel.push_back(at == number.end() ? -1 : at->second);
    }
    group.activations.push_back(std::move(made));
  }
}

std::set<tn_node_id> Groups::prunable(Graph graph) const {
  std::vector<bool> is_channel(static_cast<size_t>(couplings_.n_atoms()));
  for (const Group& group : groups_)
    for (int64_t root : group.roots)
      is_channel[static_cast<size_t>(root)] = true;
  std::set<tn_value_id> values;
  for (const Slot& slot : couplings_.slots())
    for (int64_t i = 0; slot.value && i < slot.size; ++i)
      if (is_channel[static_cast<size_t>(couplings_.find(slot.first + i))])
        values.insert(slot.value.id);
  std::set<tn_node_id> out;
  for (Node node : graph.nodes())
    for (const std::vector<Value>& some : {node.inputs(), node.outputs()})
      for (Value value : some)
        if (value && values.contains(value.id)) out.insert(node.id);
  return out;
}

void Groups::collect_weights() {
  std::map<tn_value_id, Weight> found;
  std::map<tn_value_id, int> axes;  // bit 0: makes, bit 1: reads
  std::vector<tn_value_id> order;
  for (const Slot& slot : couplings_.slots()) {
    if (slot.kind != Kind::kMakes && slot.kind != Kind::kReads) continue;
    Weight& weight = found[slot.value.id];
    if (!weight.value) order.push_back(slot.value.id);
    weight.value = slot.value;
    weight.node = slot.user;
    (slot.kind == Kind::kMakes ? weight.makes : weight.reads) = static_cast<size_t>(slot.axis);
    axes[slot.value.id] |= slot.kind == Kind::kMakes ? 1 : 2;
  }
  for (tn_value_id id : order) {
    Weight& weight = found[id];
    if (axes[id] != 3 || !is_float(weight.value.dtype())) continue;
    int reads = couplings_.slot(weight.value, weight.reads);
    std::tie(weight.multiplies, weight.features) =
        multiplied_with(couplings_, couplings_.slots()[static_cast<size_t>(reads)]);
    weights_.push_back(weight);
  }
}

}  // namespace tenon::pruner
