// SPDX-License-Identifier: Apache-2.0
// reduce: axes that are reduced stay whole, the others pass.
#include "../rules.hpp"

namespace tenon::pruner {
namespace {

Refusal couple_reduce(Node node, Couplings& couplings) {
  Value in = node.input(0), out = node.output();
  size_t rank = couplings.rank(in);
  Stated stated(node);
  auto axes = stated.ints("axes");
  if (stated.has("axes") && !axes) return "its axes are not known";
  bool every = !axes || axes->empty();
  if (every && stated.integer("noop", 0) != 0) return "it reduces nothing";
  std::vector<bool> reduced(rank, every);
  for (int64_t given : axes.value_or(std::vector<int64_t>{})) {
    auto axis = axis_in(given, rank);
    if (!axis) return "its axes are out of range";
    reduced[*axis] = true;
  }
  bool keep = stated.integer("keepdims", 1) != 0;
  size_t to = 0;
  for (size_t axis = 0; axis < rank; ++axis) {
    int slot = couplings.slot(in, axis);
    if (reduced[axis]) couplings.protect(slot, cat(node_text(node), " reduces it"));
    if (!reduced[axis]) couplings.join(slot, couplings.slot(out, to), node);
    to += keep || !reduced[axis];
  }
  return std::nullopt;
}

constexpr Rule kRules[] = {{TN_COUPLING_REDUCE, couple_reduce}};

}  // namespace

std::span<const Rule> reducing_rules() {
  return kRules;
}

}  // namespace tenon::pruner
