// SPDX-License-Identifier: Apache-2.0
// Operators that move elements: Transpose, Pad, Resize, Gather by constant indices, Dropout; and
// Shape, whose result must not change for those who read it.
#include <algorithm>

#include "tenon/sdk/match.hpp"

#include "../rules.hpp"

namespace tenon::pruner {
namespace {

Refusal couple_transpose(Node node, Couplings& couplings) {
  size_t rank = couplings.rank(node.input(0));
  std::vector<int64_t> perm = node.attr_ints("perm");
  for (size_t axis = 0; axis < rank; ++axis) {
    size_t from = perm.empty() ? rank - 1 - axis : static_cast<size_t>(perm.at(axis));
    couplings.join(couplings.slot(node.input(0), from), couplings.slot(node.output(), axis), node);
  }
  return std::nullopt;
}

Refusal couple_dropout(Node node, Couplings& couplings) {
  for (Value out : node.outputs())
    for (size_t axis = 0; out && axis < couplings.rank(out); ++axis)
      couplings.join(couplings.slot(node.input(0), axis), couplings.slot(out, axis), node);
  return std::nullopt;
}

// Axes whose entries a node leaves as they are; the others stay whole.
void couple_left_alone(Node node, const std::vector<bool>& changed, Couplings& couplings) {
  for (size_t axis = 0; axis < changed.size(); ++axis) {
    int in = couplings.slot(node.input(0), axis), out = couplings.slot(node.output(), axis);
    if (!changed[axis]) {
      couplings.join(in, out, node);
      continue;
    }
    for (int slot : {in, out})
      couplings.protect(slot, cat(node_text(node), " changes its size"));
  }
}

Refusal couple_pad(Node node, Couplings& couplings) {
  auto pads = constant_ints(node.input(1));
  auto axes = node.input(3) ? constant_ints(node.input(3)) : std::nullopt;
  if (!pads || (node.input(3) && !axes)) return "how much it pads is not known";
  std::vector<bool> changed(couplings.rank(node.input(0)));
  size_t n = pads->size() / 2;
  for (size_t i = 0; i < n; ++i) {
    auto axis = axis_in(axes ? axes->at(i) : static_cast<int64_t>(i), changed.size());
    if (!axis) return "its axes are out of range";
    changed[*axis] = pads->at(i) != 0 || pads->at(n + i) != 0;
  }
  couple_left_alone(node, changed, couplings);
  return std::nullopt;
}

// Only with scales: sizes state every size, and a region counts in sizes.
Refusal couple_resize(Node node, Couplings& couplings) {
  std::vector<bool> changed(couplings.rank(node.input(0)), false);
  auto scales = node.input(2) ? numbers_of(node.input(2)) : std::nullopt;
  bool cropped = node.attr_text("coordinate_transformation_mode") == "tf_crop_and_resize";
  if (!scales || scales->empty() || cropped) return "it states sizes";
  std::vector<int64_t> axes = node.attr_ints("axes");
  for (size_t i = 0; i < scales->size(); ++i) {
    auto axis = axis_in(axes.empty() ? static_cast<int64_t>(i) : axes.at(i), changed.size());
    if (!axis) return "its axes are out of range";
    changed[*axis] = (*scales)[i] != 1;
  }
  couple_left_alone(node, changed, couplings);
  return std::nullopt;
}

Refusal couple_gather(Node node, Couplings& couplings) {
  Value in = node.input(0), out = node.output();
  size_t rank = couplings.rank(in), more = couplings.rank(node.input(1));
  std::optional<size_t> axis = axis_in(node.attr_int("axis"), rank);
  if (!axis) return "its axis is out of range";
  for (size_t other = 0; other < rank; ++other) {
    if (other == *axis) continue;
    int slot = couplings.slot(in, other);
    couplings.join(slot, couplings.slot(out, other < *axis ? other : other + more - 1), node);
    couplings.mark(slot, Kind::kMakes, node, 0);
  }
  couplings.protect(couplings.slot(in, *axis), cat(node_text(node), " counts its entries"));
  for (size_t i = 0; i < more; ++i) {
    couplings.join(couplings.slot(node.input(1), i), couplings.slot(out, *axis + i), node);
    couplings.protect(couplings.slot(out, *axis + i), cat(node_text(node), " counts its entries"));
  }
  return std::nullopt;
}

// Sizes that nodes read are sizes that they count on, unless they only take others out.
Refusal couple_shape(Node node, Couplings& couplings) {
  Value in = node.input(0);
  auto rank = static_cast<int64_t>(couplings.rank(in));
  auto counted = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = counted(node.attr_int("start", 0)), end = counted(node.attr_int("end", rank));
  std::vector<bool> read(static_cast<size_t>(rank), false);
  bool all = node.output().is_output();
  for (uint64_t i = 0; i < node.output().consumer_count(); ++i) {
    Node user = node.output().consumer(i);
    auto at = user.is("Gather") ? constant_ints(user.input(1)) : std::nullopt;
    if (user.is("Slice")) {
      auto from = constant_ints(user.input(1)), to = constant_ints(user.input(2));
      if (from && to && from->size() == 1 && !user.input(4) && from->at(0) >= 0 && to->at(0) >= 0) {
        at.emplace();
        for (int64_t one = from->at(0); one < std::min(to->at(0), end - start); ++one)
          at->push_back(one);
      }
    }
    if (!at) {
      all = true;
      continue;
    }
    for (int64_t one : *at) {
      int64_t axis = one < 0 ? end + one : start + one;
      if (axis >= 0 && axis < rank) read[static_cast<size_t>(axis)] = true;
    }
  }
  for (int64_t axis = start; axis < end; ++axis)
    if (all || read[static_cast<size_t>(axis)])
      couplings.protect(couplings.slot(in, static_cast<size_t>(axis)),
                        cat(node_text(node), " reads its size"));
  return std::nullopt;
}

constexpr OpRule kRules[] = {
    {"Transpose", couple_transpose}, {"Dropout", couple_dropout}, {"Pad", couple_pad},
    {"Resize", couple_resize},       {"Gather", couple_gather},   {"Shape", couple_shape}};

}  // namespace

std::span<const OpRule> moving_rules() {
  return kRules;
}

}  // namespace tenon::pruner
