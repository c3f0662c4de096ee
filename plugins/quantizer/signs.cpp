// SPDX-License-Identifier: Apache-2.0
#include "signs.hpp"

#include <unordered_set>

namespace tenon::quantizer {
namespace {

// The Sub(clip, stop(clip)) of a straight_sign's last node; falsy: it is another Add.
Node passage_of(Node add) {
  if (!add || !add.is("Add") || !add.input(0) || !add.input(1)) return {};
  if (!add.input(0).producer() || !add.input(0).producer().is("Where")) return {};
  Node sub = add.input(1).producer();
  if (!sub || !sub.is("Sub")) return {};
  Node clip = sub.input(0).producer(), stop = sub.input(1).producer();
  const bool fits = clip && stop && clip.is("Clip") && stop.type() == "StopGradient" &&
                    stop.input(0) == sub.input(0);
  return fits ? sub : Node{};
}

}  // namespace

Status erase_unused(EditView edit, Node last) {
  std::vector<Node> stack{last};
  std::unordered_set<tn_node_id> erased;
  while (!stack.empty()) {
    Node node = stack.back();
    stack.pop_back();
    if (erased.contains(node.id) || node.is_used()) continue;
    for (Value v : node.inputs())
      if (v && v.producer()) stack.push_back(v.producer());
    erased.insert(node.id);
    TN_CHECK(edit.erase(node));
  }
  return {};
}

Value straight_sign(Builder& b, Value is_positive, Value u, const std::string& name) {
  Value one = b.number(1, TN_F32), other = b.number(-1, TN_F32);
  Value sign = b.op("Where", {is_positive, one, other});
  Value cut = b.op("Clip", {u, other, one});
  Node held = b.node({.type = "StopGradient", .inputs = {cut}, .domain = "tenon"});
  if (!held) return {};
  Value nothing = b.sub(cut, held.output());
  Node made =
      b.node({.type = "Add", .inputs = {sign, nothing}, .name = name, .output_names = {name}});
  return made ? made.output() : Value{};
}

bool is_straight_sign(Value value) {
  return value && static_cast<bool>(passage_of(value.producer()));
}

Result<uint64_t> fold_signs(EditView edit) {
  uint64_t count = 0;
  for (Node node : edit.graph().nodes()) {
    if (!passage_of(node)) continue;
    TN_CHECK(edit.replace(node.output(), node.input(0)));
    TN_CHECK(erase_unused(edit, node));
    ++count;
  }
  return count;
}

}  // namespace tenon::quantizer
