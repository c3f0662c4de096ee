// SPDX-License-Identifier: Apache-2.0
// Operators whose row has axes: equal labels are coupled, a label that is mixed along (~), that has
// another size in the output (') or that one operand alone has must stay.
//
// Grouped axes "(g c)": with one entry per group (depthwise) whole groups go and the bound
// attribute follows; with several the same entry of every group goes, so that groups stay equal;
// one group is no group.
#include <algorithm>
#include <map>

#include "../rules.hpp"
#include "../signature.hpp"

namespace tenon::pruner {
namespace {

using Key = std::pair<uint32_t, int64_t>;  // label, position

struct Label {
  int slot = kNoSlot;
  size_t operands = 0;
  bool in_output = false, mixed = false, resized = false, is_inner = false;
};

Key key_of(const Factor& factor) {
  return {factor.label, factor.position};
}

std::map<Key, Label> labels_of(const Signature& signature, Couplings& couplings) {
  std::map<Key, Label> out;
  std::map<Key, std::pair<bool, uint64_t>> latest;  // operand; places of one follow each other
  for (const Place& place : signature.places()) {
    const Factor* pivot = signature.pivot(place);
    const std::pair operand{place.is_input, place.index};
    for (const Factor& factor : place.factors) {
      if (factor.label == TN_AXES_NO_LABEL) continue;
      auto [at, fresh] = out.try_emplace(key_of(factor));
      Label& label = at->second;
      int64_t size = signature.size_of(factor);
      if (fresh && size >= 0 && size <= Couplings::kLargest) label.slot = couplings.local(size);
      // Both axes of a square matrix are of one operand.
      const auto [before, is_first] = latest.try_emplace(key_of(factor), operand);
      if (is_first || before->second != operand) ++label.operands;
      before->second = operand;
      label.in_output |= !place.is_input;
      label.mixed |= (factor.flags & TN_AXES_TERM_REDUCED) != 0;
      label.resized |= (factor.flags & TN_AXES_TERM_PRIMED) != 0;
      // Within a group that keeps its form: alone it must keep its size as well.
      label.is_inner |= pivot && !pivot->is_same(factor) && signature.size_of(factor) != 1;
    }
  }
  return out;
}

void couple_place(Node node,
                  const Place& place,
                  const Signature& signature,
                  const std::map<Key, Label>& labels,
                  Couplings& couplings) {
  int slot = couplings.slot(place.value, place.axis);
  const Factor* pivot = signature.pivot(place);
  if (place.factors.size() > 2) {
    couplings.protect(slot, cat(node_text(node), " makes it from several axes"));
    return;
  }
  const Factor& factor = pivot ? *pivot : place.factors[0];
  if (factor.label == TN_AXES_NO_LABEL) {
    if (factor.size != 1) couplings.protect(slot, cat(node_text(node), " states its size"));
    return;
  }
  const Label& label = labels.at(key_of(factor));
  if (!pivot) {
    bool broadcast = signature.is_batch(factor) && slot != kNoSlot && couplings.size(slot) == 1 &&
                     signature.size_of(factor) != 1;
    if (!broadcast && !(factor.flags & TN_AXES_TERM_PRIMED)) couplings.join(slot, label.slot, node);
  } else {
    int64_t outer = signature.size_of(place.factors[0]);
    int64_t inner = signature.size_of(place.factors[1]);
    if (slot == kNoSlot || label.slot == kNoSlot || outer * inner != couplings.size(slot)) {
      couplings.join(slot, kNoSlot, node);
      return;
    }
    bool by_group = pivot == &place.factors[0];
    for (int64_t i = 0; i < outer; ++i)
      for (int64_t j = 0; j < inner; ++j)
        couplings.join(slot, i * inner + j, label.slot, by_group ? i : j);
  }
  if (!place.is_input) return;
  Kind kind = label.in_output ? Kind::kMakes : Kind::kReads;
  if (label.operands == 1) kind = Kind::kNone;  // a window of the weight's own
  if (couplings.rank(place.value) < 2) kind = Kind::kVector;
  couplings.mark(slot, kind, node, place.index);
}

void protect_labels(Node node, const std::map<Key, Label>& labels, Couplings& couplings) {
  const Stated stated(node);
  const bool may_go =
      stated.names("statistics") || stated.names("groups");  // what stays is normalized by itself
  for (const auto& [key, label] : labels) {
    if (label.mixed && !may_go)
      couplings.protect(label.slot, cat(node_text(node), " mixes its entries"));
    if (label.resized)
      couplings.protect(label.slot, cat(node_text(node), " slides a window over it"));
    if (label.is_inner) couplings.protect(label.slot, cat(node_text(node), " keeps its groups"));
    if (label.operands == 1)
      couplings.protect(label.slot, cat(node_text(node), " reads it as a whole"));
  }
}

}  // namespace

Refusal couple_axes(Node node, const tn_axes& axes, Couplings& couplings) {
  std::optional<Signature> signature = Signature::lay(node, axes);
  if (!signature) return "its shapes do not fit its axes";
  std::map<Key, Label> labels = labels_of(*signature, couplings);
  for (const Place& place : signature->places()) {
    couple_place(node, place, *signature, labels, couplings);
    bool resized = place.factors[0].flags & TN_AXES_TERM_PRIMED;
    if (resized)
      couplings.protect(couplings.slot(place.value, place.axis),
                        cat(node_text(node), " slides a window over it"));
  }
  protect_labels(node, labels, couplings);
  return std::nullopt;
}

// Whole groups went: the attribute that counts them follows.
Status rewrite_axes(EditView edit, Node node, const tn_axes& axes, const Kept& kept) {
  std::optional<Signature> signature = Signature::lay(node, axes);
  if (!signature) return {};
  for (const Place& place : signature->places()) {
    const Factor* pivot = signature->pivot(place);
    if (!pivot || pivot != &place.factors[0] || !kept(place.value, place.axis)) continue;
    const tn_axes_label& label = axes.labels[pivot->label];
    std::string_view attribute(axes.text + label.bind_offset, label.bind_len);
    if (attribute.empty()) return {};
    int64_t inner = signature->size_of(place.factors[1]);
    return edit.set_attr(node, {attribute, size_after(place.value, place.axis, kept) / inner});
  }
  return {};
}

}  // namespace tenon::pruner
