// SPDX-License-Identifier: Apache-2.0
// matrices: a product whose attributes say which way its matrices lie. equation: one whose labels
// say it, as of experts that a batch goes through at once ("bsd,edf->bsef").
#include <map>

#include "tenon/sdk/equation.hpp"

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

struct Letter {  // of an equation
  int slot = kNoSlot;
  size_t operands = 0;
  bool in_output = false;
};

// Each letter with its number of entries: an axis of one entry is stretched where others are
// longer.
std::map<int, Letter> letters_of(Node node, const Equation& equation, Couplings& couplings) {
  std::map<int, int64_t> sizes;
  std::map<int, Letter> out;
  for (size_t i = 0; i < equation.inputs.size(); ++i)
    for (size_t axis = 0; axis < equation.inputs[i].size(); ++axis) {
      const int label = equation.inputs[i][axis], slot = couplings.slot(node.input(i), axis);
      ++out[label].operands;
      const int64_t size = slot == kNoSlot ? -1 : couplings.size(slot);
      auto [at, fresh] = sizes.emplace(label, size);
      if (!fresh && at->second == 1) at->second = size;
    }
  for (auto& [label, letter] : out)
    if (sizes.at(label) >= 0) letter.slot = couplings.local(sizes.at(label));
  for (int label : equation.output)
    out[label].in_output = true;
  return out;
}

Refusal couple_equation(Node node, Couplings& couplings) {
  std::vector<size_t> ranks;
  for (Value value : node.inputs())
    ranks.push_back(couplings.rank(value));
  auto equation = parse_equation(Stated(node).text("equation"), ranks);
  if (!equation.ok()) return "its equation does not fit its inputs";
  std::map<int, Letter> letters = letters_of(node, *equation, couplings);
  auto join = [&](Value value, size_t axis, const Letter& letter) {
    const int slot = couplings.slot(value, axis);
    const bool is_stretched = slot != kNoSlot && couplings.size(slot) == 1 &&
                              letter.slot != kNoSlot && couplings.size(letter.slot) != 1;
    if (!is_stretched) couplings.join(slot, letter.slot, node);
    return slot;
  };
  for (size_t axis = 0; axis < equation->output.size(); ++axis)
    join(node.output(), axis, letters.at(equation->output[axis]));
  for (uint64_t i = 0; i < node.n_inputs(); ++i)
    for (size_t axis = 0; axis < ranks[i]; ++axis) {
      const Letter& letter = letters.at(equation->inputs[i][axis]);
      const int slot = join(node.input(i), axis, letter);
      const Kind kind = letter.in_output ? Kind::kMakes : Kind::kReads;
      couplings.mark(slot, ranks[i] < 2 ? Kind::kVector : kind, node, i);
    }
  for (const auto& [label, letter] : letters)
    if (letter.operands == 1 && !letter.in_output)
      couplings.protect(letter.slot, cat(node_text(node), " reads it as a whole"));
  return std::nullopt;
}

constexpr Rule kRules[] = {{TN_COUPLING_MATRICES, couple_matrices},
                           {TN_COUPLING_EQUATION, couple_equation}};

}  // namespace

std::span<const Rule> product_rules() {
  return kRules;
}

}  // namespace tenon::pruner
