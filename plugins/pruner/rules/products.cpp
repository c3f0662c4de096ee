// SPDX-License-Identifier: Apache-2.0
// matrices: a product whose attributes say which way its matrices lie.
#include "../rules.hpp"

namespace tenon::pruner {
namespace {

uint64_t input_of(Node node, Value value) {
  uint64_t i = 0;
  while (i < node.n_inputs() && !(node.input(i) == value))
    ++i;
  return i;
}

Refusal couple_matrices(Node node, Couplings& couplings) {
  Stated stated(node);
  Value a = stated.input("a"), b = stated.input("b"), c = stated.input("c"), y = node.output();
  if (!a || !b || couplings.rank(a) != 2 || couplings.rank(b) != 2) return "expected two matrices";
  size_t a_rows = stated.integer("transpose_a", 0) != 0 ? 1 : 0;
  size_t b_rows = stated.integer("transpose_b", 0) != 0 ? 1 : 0;
  struct Axis {
    Value value;
    size_t axis;
    Kind kind;
  };
  auto mark = [&](const Axis& one) {
    couplings.mark(couplings.slot(one.value, one.axis), one.kind, node, input_of(node, one.value));
  };
  couplings.join(couplings.slot(a, a_rows), couplings.slot(y, 0), node);
  couplings.join(couplings.slot(a, 1 - a_rows), couplings.slot(b, b_rows), node);
  couplings.join(couplings.slot(b, 1 - b_rows), couplings.slot(y, 1), node);
  mark({a, a_rows, Kind::kMakes});
  mark({a, 1 - a_rows, Kind::kReads});
  mark({b, b_rows, Kind::kReads});
  mark({b, 1 - b_rows, Kind::kMakes});
  for (size_t axis = 0; c && axis < couplings.rank(c); ++axis) {
    int slot = couplings.slot(c, axis);
    if (slot != kNoSlot && couplings.size(slot) == 1) continue;
    couplings.join(slot, couplings.slot(y, 2 - couplings.rank(c) + axis), node);
    couplings.mark(slot, Kind::kVector, node, input_of(node, c));
  }
  return std::nullopt;
}

constexpr Rule kRules[] = {{TN_COUPLING_MATRICES, couple_matrices}};

}  // namespace

std::span<const Rule> product_rules() {
  return kRules;
}

}  // namespace tenon::pruner
