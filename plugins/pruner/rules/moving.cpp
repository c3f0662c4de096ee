// SPDX-License-Identifier: Apache-2.0
// What moves elements: permute, pad, scale, gather; and shape, whose result must not change
// for those who read it.
#include <algorithm>

#include "tenon/sdk/match.hpp"

#include "../rules.hpp"
#include "sizes.hpp"

namespace tenon::pruner {
namespace {

Refusal couple_permute(Node node, Couplings& couplings) {
  size_t rank = couplings.rank(node.input(0));
  std::vector<int64_t> perm = Stated(node).ints("perm").value_or(std::vector<int64_t>{});
  for (size_t axis = 0; axis < rank; ++axis) {
    size_t from = perm.empty() ? rank - 1 - axis : static_cast<size_t>(perm.at(axis));
    couplings.join(couplings.slot(node.input(0), from), couplings.slot(node.output(), axis), node);
  }
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
  Stated stated(node);
  auto pads = stated.ints("pads"), axes = stated.ints("axes");
  if (!pads || (stated.has("axes") && !axes)) return "how much it pads is not known";
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

// Only with scales: sizes state every size, and a region is a share of them.
Refusal couple_scale(Node node, Couplings& couplings) {
  std::vector<bool> changed(couplings.rank(node.input(0)), false);
  Stated stated(node);
  Value given = stated.input("scales"), region = stated.input("region");
  auto scales = given ? numbers_of(given) : std::nullopt;
  bool is_whole = !region || (region.is_constant() && element_count(region.constant().dl()) == 0);
  if (!scales || scales->empty() || !is_whole) return "it states sizes";
  std::vector<int64_t> axes = stated.ints("axes").value_or(std::vector<int64_t>{});
  for (size_t i = 0; i < scales->size(); ++i) {
    auto axis = axis_in(axes.empty() ? static_cast<int64_t>(i) : axes.at(i), changed.size());
    if (!axis) return "its axes are out of range";
    changed[*axis] = (*scales)[i] != 1;
  }
  couple_left_alone(node, changed, couplings);
  return std::nullopt;
}

Refusal couple_gather(Node node, Couplings& couplings) {
  Stated stated(node);
  Value in = node.input(0), at = stated.input("at"), out = node.output();
  if (!at) return "where it gathers is not known";
  size_t rank = couplings.rank(in), more = couplings.rank(at);
  std::optional<size_t> axis = axis_in(stated.integer("axis", 0), rank);
  if (!axis) return "its axis is out of range";
  for (size_t other = 0; other < rank; ++other) {
    if (other == *axis) continue;
    int slot = couplings.slot(in, other);
    couplings.join(slot, couplings.slot(out, other < *axis ? other : other + more - 1), node);
    couplings.mark(slot, Kind::kMakes, node, 0);
  }
  couplings.protect(couplings.slot(in, *axis), cat(node_text(node), " counts its entries"));
  for (size_t i = 0; i < more; ++i) {
    couplings.join(couplings.slot(at, i), couplings.slot(out, *axis + i), node);
    couplings.protect(couplings.slot(out, *axis + i), cat(node_text(node), " counts its entries"));
  }
  return std::nullopt;
}

// Sizes that nodes read are sizes that they count on, unless they only take others out.
Refusal couple_shape(Node node, Couplings& couplings) {
  Value in = node.input(0);
  auto rank = static_cast<int64_t>(couplings.rank(in));
  auto counted = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  Stated stated(node);
  int64_t start = counted(stated.integer("start", 0)), end = counted(stated.integer("end", rank));
  std::vector<bool> read(static_cast<size_t>(rank), false);
  bool all = node.output().is_output();
  for (uint64_t i = 0; i < node.output().consumer_count(); ++i) {
    uint64_t input = 0;
    const Node user = node.output().consumer(i, &input);
    if (serves_views(user, input)) continue;  // these lose what this loses
    auto at = taken_sizes(user, end - start);
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

constexpr Rule kRules[] = {{TN_COUPLING_PERMUTE, couple_permute},
                           {TN_COUPLING_PAD, couple_pad},
                           {TN_COUPLING_SCALE, couple_scale},
                           {TN_COUPLING_GATHER, couple_gather},
                           {TN_COUPLING_SHAPE, couple_shape}};

}  // namespace

std::span<const Rule> moving_rules() {
  return kRules;
}

}  // namespace tenon::pruner
