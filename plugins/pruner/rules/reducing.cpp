// SPDX-License-Identifier: Apache-2.0
// The Reduce family: axes that are reduced stay whole, the others pass.
#include "tenon/sdk/match.hpp"

#include "../rules.hpp"

namespace tenon::pruner {
namespace {

Refusal couple_reduce(Node node, Couplings& couplings) {
  Value in = node.input(0), out = node.output();
  size_t rank = couplings.rank(in);
  auto axes = node.input(1) ? constant_ints(node.input(1)) : std::nullopt;
  if (node.input(1) && !axes) return "its axes are not known";
  bool every = !axes || axes->empty();
  if (every && node.attr_int("noop_with_empty_axes") != 0) return "it reduces nothing";
  std::vector<bool> reduced(rank, every);
  for (int64_t given : axes.value_or(std::vector<int64_t>{})) {
    auto axis = axis_in(given, rank);
    if (!axis) return "its axes are out of range";
    reduced[*axis] = true;
  }
  bool keep = node.attr_int("keepdims", 1) != 0;
  size_t to = 0;
  for (size_t axis = 0; axis < rank; ++axis) {
    int slot = couplings.slot(in, axis);
    if (reduced[axis]) couplings.protect(slot, cat(node_text(node), " reduces it"));
    if (!reduced[axis]) couplings.join(slot, couplings.slot(out, to), node);
    to += keep || !reduced[axis];
  }
  return std::nullopt;
}

constexpr OpRule kRules[] = {{"ReduceSum", couple_reduce},    {"ReduceMean", couple_reduce},
                             {"ReduceMax", couple_reduce},    {"ReduceMin", couple_reduce},
                             {"ReduceProd", couple_reduce},   {"ReduceSumSquare", couple_reduce},
                             {"ReduceL1", couple_reduce},     {"ReduceL2", couple_reduce},
                             {"ReduceLogSum", couple_reduce}, {"ReduceLogSumExp", couple_reduce}};

}  // namespace

std::span<const OpRule> reducing_rules() {
  return kRules;
}

}  // namespace tenon::pruner
