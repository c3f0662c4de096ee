// SPDX-License-Identifier: Apache-2.0
// Pointwise operators: axes aligned at the right, size 1 broadcasts and so passes by.
#include "../rules.hpp"

namespace tenon::pruner {

Refusal couple_pointwise(Node node, Couplings& couplings) {
  Value out = node.output();
  size_t rank = couplings.rank(out);
  for (uint64_t input = 0; input < node.n_inputs(); ++input) {
    Value in = node.input(input);
    if (!in) continue;
    size_t own = couplings.rank(in);
    if (own > rank) return "its inputs do not broadcast to its output";
    for (size_t axis = 0; axis < own; ++axis) {
      int slot = couplings.slot(in, axis), to = couplings.slot(out, rank - own + axis);
      if (slot != kNoSlot && couplings.size(slot) == 1 &&
          (to == kNoSlot || couplings.size(to) != 1))
        continue;
      couplings.join(slot, to, node);
      couplings.mark(slot, Kind::kVector, node, input);
    }
  }
  return std::nullopt;
}

}  // namespace tenon::pruner
