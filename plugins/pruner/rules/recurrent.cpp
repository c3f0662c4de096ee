// SPDX-License-Identifier: Apache-2.0
// recurrent: a unit of the state goes with its row of every gate, its bias and peephole, and the
// column of the recurrent weights that reads it. Every operand ends in the axis of units, once for
// each gate that it has: entry i belongs to unit i modulo the size of the state.
#include "../rules.hpp"

namespace tenon::pruner {
namespace {

class Coupling {
 public:
  Coupling(Node node, Couplings& couplings) : node_(node), stated_(node), couplings_(couplings) {}

  Refusal couple() {
    Value x = node_.input(0), w = stated_.input("w"), r = stated_.input("r");
    if (!w || !r || couplings_.rank(x) != 3 || couplings_.rank(w) != 3 || couplings_.rank(r) != 3)
      return "expected weights of three axes";
    int reads = couplings_.slot(r, 2);
    if (reads == kNoSlot) return "how many units it has is not known";
    units_ = couplings_.local(couplings_.size(reads));
    join(r, 2, Kind::kReads);
    join(r, 1, Kind::kMakes);
    join(w, 1, Kind::kMakes);
    couplings_.join(couplings_.slot(x, 2), couplings_.slot(w, 2), node_);
    couplings_.mark(couplings_.slot(w, 2), Kind::kReads, node_, input_of(w));
    keep_others(x);
    for (std::string_view key : {"bias", "h", "c", "peepholes"})
      if (Value vector = stated_.input(key)) join_last(vector);
    for (Value out : node_.outputs())
      if (out) join_last(out);
    return std::nullopt;
  }

 private:
  uint64_t input_of(Value value) const {
    uint64_t i = 0;
    while (!(node_.input(i) == value))
      ++i;
    return i;
  }
  void join(Value value, size_t axis, Kind kind) {
    int slot = couplings_.slot(value, axis);
    int64_t n = couplings_.size(units_);
    if (slot == kNoSlot || n == 0 || couplings_.size(slot) % n != 0) {
      couplings_.join(slot, kNoSlot, node_);
      couplings_.protect(units_, cat(node_text(node_), " meets a state of another size"));
      return;
    }
    for (int64_t i = 0; i < couplings_.size(slot); ++i)
      couplings_.join(slot, i, units_, i % n);
    if (value.is_constant()) couplings_.mark(slot, kind, node_, input_of(value));
  }
  void join_last(Value value) {
    join(value, couplings_.rank(value) - 1, Kind::kVector);
    keep_others(value);
  }
  // Steps, samples and directions.
  void keep_others(Value value) {
    for (size_t axis = 0; axis + 1 < couplings_.rank(value); ++axis)
      couplings_.protect(couplings_.slot(value, axis), cat(node_text(node_), " goes through it"));
  }

  Node node_;
  Stated stated_;
  Couplings& couplings_;
  int units_ = kNoSlot;
};

Refusal couple_recurrent(Node node, Couplings& couplings) {
  return Coupling(node, couplings).couple();
}

Status rewrite_recurrent(EditView edit, Node node, const Kept& kept) {
  Stated stated(node);
  Value r = stated.input("r");
  if (!stated.has("hidden") || !kept(r, 2)) return {};
  return stated.set(edit, "hidden", size_after(r, 2, kept));
}

constexpr Rule kRules[] = {{TN_COUPLING_RECURRENT, couple_recurrent, rewrite_recurrent}};

}  // namespace

std::span<const Rule> recurrent_rules() {
  return kRules;
}

}  // namespace tenon::pruner
