// SPDX-License-Identifier: Apache-2.0
// same: the outputs have the axes of input 0. With `sizes` it is repeated along some. With
// `statistics` numbers are normalized together from that axis on (LayerNormalization): entries go
// from there as well, and those that stay are normalized by their own statistics. Where entries are
// masked instead, the node is given the others alone, for zeros would be counted.
#include <algorithm>

#include "tenon/sdk/build.hpp"

#include "../rules.hpp"

namespace tenon::pruner {
namespace {

// Axes are aligned at the right. Those that are repeated to a stated size stay.
Refusal couple_expanded(Node node, Couplings& couplings) {
  Value in = node.input(0), out = node.output();
  const size_t own = couplings.rank(in), rank = couplings.rank(out);
  if (own > rank || !Stated(node).ints("sizes")) return "its sizes are computed";
  for (size_t axis = 0; axis < rank; ++axis) {
    const int to = couplings.slot(out, axis);
    const int from = axis + own < rank ? kNoSlot : couplings.slot(in, axis + own - rank);
    const bool passes = from != kNoSlot && to != kNoSlot;
    if (passes && couplings.size(from) == couplings.size(to)) {
      couplings.join(from, to, node);
      continue;
    }
    for (int slot : {from, to})
      couplings.protect(slot, cat(node_text(node), " states its size"));
  }
  return std::nullopt;
}

Refusal couple_same(Node node, Couplings& couplings) {
  if (Stated(node).names("sizes")) return couple_expanded(node, couplings);
  const tn_axes* axes = node.axes();  // of scales and biases too
  if (axes && Stated(node).names("statistics")) return couple_axes(node, *axes, couplings);
  for (Value out : node.outputs())
    for (size_t axis = 0; out && axis < couplings.rank(out); ++axis)
      couplings.join(couplings.slot(node.input(0), axis), couplings.slot(out, axis), node);
  return std::nullopt;
}

Status rewrite_same(EditView edit, Node node, const Kept& kept) {
  Stated stated(node);
  auto sizes = stated.ints("sizes");
  if (!sizes) return {};
  const size_t rank = node.output().type().rank();
  bool loses = false;
  for (size_t i = 0; i < sizes->size(); ++i) {
    const size_t axis = rank - sizes->size() + i;
    if ((*sizes)[i] == 1 || !kept(node.output(), axis)) continue;
    (*sizes)[i] = size_after(node.output(), axis, kept);
    loses = true;
  }
  return loses ? stated.set(edit, "sizes", *sizes) : Status();
}

// The entries of a value that stay, as those of `as` along its axes from `first` on.
Value left_of(Builder& b, Value value, Value as, size_t first, const Kept& kept) {
  Value out = value;
  for (size_t axis = first; value && axis < as.type().rank(); ++axis)
    if (const std::vector<int64_t>* left = kept(as, axis))
      out = b.op("Gather", {out, b.ints(*left)}, {{"axis", static_cast<int64_t>(axis)}});
  return out;
}

// Zeros where entries of `part`, once of type `whole`, have gone: a zero is put behind those that
// stay, and each place takes its own entry or that one.
Value put_back(Builder& b, Value part, const Type& whole, size_t first, const Kept& kept) {
  const size_t rank = whole.rank();
  Value value = part;
  for (size_t axis = first; axis < rank; ++axis) {
    const std::vector<int64_t>* left = kept(part, axis);
    if (!left) continue;
    const auto zero = static_cast<int64_t>(left->size());
    std::vector<int64_t> pads(2 * rank, 0), from(static_cast<size_t>(whole.dims[axis]), zero);
    pads[rank + axis] = 1;
    for (size_t i = 0; i < left->size(); ++i)
      from[static_cast<size_t>((*left)[i])] = static_cast<int64_t>(i);
    Value longer = b.op("Pad", {value, b.ints(pads)});
    value = b.op("Gather", {longer, b.ints(from)}, {{"axis", static_cast<int64_t>(axis)}});
  }
  return value;
}

Status mask_same(EditView edit, Node node, const Kept& kept) {
  Stated stated(node);
  Value data = node.input(0), result = node.output();
  auto first = axis_in(stated.integer("statistics", -1), data.type().rank());
  if (!stated.names("statistics") || !first) return {};
  bool loses = false;
  for (size_t axis = *first; axis < data.type().rank(); ++axis)
    loses |= kept(result, axis) != nullptr;
  if (!loses) return {};
  const Type type = result.type();
  Builder b(edit);
  // What reads the result reads the whole from here on, but for what puts it together.
  Value stand_in = b.op("Identity", {data});
  TN_CHECK(b.status());
  TN_CHECK(edit.replace(result, stand_in));
  // By the axes of the result: what a normalization gives to the next one was put back meanwhile.
  for (uint64_t i = 0; i < node.n_inputs(); ++i) {
    Value input = node.input(i);
    if (!input) continue;
    Value left =
        i == 0 ? left_of(b, input, result, *first, kept) : left_of(b, input, input, 0, kept);
    TN_CHECK(b.status());
    TN_CHECK(edit.set_input(node, i, left));
  }
  Value whole = put_back(b, result, type, *first, kept);
  TN_CHECK(b.status());
  TN_CHECK(edit.replace(stand_in, whole));
  return edit.erase(stand_in.producer());
}

constexpr Rule kRules[] = {{TN_COUPLING_SAME, couple_same, rewrite_same, mask_same}};

}  // namespace

std::span<const Rule> same_rules() {
  return kRules;
}

}  // namespace tenon::pruner
