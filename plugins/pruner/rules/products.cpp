// SPDX-License-Identifier: Apache-2.0
// Gemm, whose attributes say which way its matrices lie.
#include "../rules.hpp"

namespace tenon::pruner {
namespace {

Refusal couple_gemm(Node node, Couplings& couplings) {
  Value a = node.input(0), b = node.input(1), c = node.input(2), y = node.output();
  size_t a_rows = node.attr_int("transA") != 0 ? 1 : 0, b_rows = node.attr_int("transB") != 0;
  struct Axis {
    Value value;
    uint64_t input;
    size_t axis;
    Kind kind;
  };
  auto mark = [&](const Axis& one) {
    couplings.mark(couplings.slot(one.value, one.axis), one.kind, node, one.input);
  };
  couplings.join(couplings.slot(a, a_rows), couplings.slot(y, 0), node);
  couplings.join(couplings.slot(a, 1 - a_rows), couplings.slot(b, b_rows), node);
  couplings.join(couplings.slot(b, 1 - b_rows), couplings.slot(y, 1), node);
  mark({a, 0, a_rows, Kind::kMakes});
  mark({a, 0, 1 - a_rows, Kind::kReads});
  mark({b, 1, b_rows, Kind::kReads});
  mark({b, 1, 1 - b_rows, Kind::kMakes});
  for (size_t axis = 0; c && axis < couplings.rank(c); ++axis) {
    int slot = couplings.slot(c, axis);
    if (slot != kNoSlot && couplings.size(slot) == 1) continue;
    couplings.join(slot, couplings.slot(y, 2 - couplings.rank(c) + axis), node);
    couplings.mark(slot, Kind::kVector, node, 2);
  }
  return std::nullopt;
}

constexpr OpRule kRules[] = {{"Gemm", couple_gemm}};

}  // namespace

std::span<const OpRule> product_rules() {
  return kRules;
}

}  // namespace tenon::pruner
