// SPDX-License-Identifier: Apache-2.0
// same: the outputs have the axes of input 0. With `sizes` it is repeated along some. With
// `statistics` numbers are normalized together from that axis on (LayerNormalization): entries go
// from there as well, and those that stay are normalized by their own statistics. Where entries are
// masked instead, the node is given the others alone, for zeros would be counted. With `groups`
// channels are normalized in so many groups. With `value` there are sizes, and no data.
#include <algorithm>

#include "tenon/sdk/build.hpp"

#include "../rules.hpp"
#include "sizes.hpp"

namespace tenon::pruner {
namespace {

bool are_zeros(const std::optional<std::vector<double>>& numbers) {
  return numbers && std::ranges::all_of(*numbers, [](double number) { return number == 0; });
}

// What a node that has no data fills its output with: zero where it does not say.
bool fills_with_zeros(Node node) {
  const tn_op_columns* columns = node.columns();
  for (uint64_t i = 0; i < columns->n_coupling_keys; ++i) {
    const tn_coupling_key& key = columns->coupling_keys[i];
    if (view(key.key) != "value") continue;
    const tn_any value = node.attr(view(key.attribute));
    if (value.tag != TN_ANY_TENSOR) return value.tag == TN_ANY_NONE;
    auto numbers = numbers_as<double>(
        Tensor::share(static_cast<tn_tensor*>(const_cast<void*>(value.v.p))).dl());
    return numbers.ok() && are_zeros(*numbers);
  }
  return false;
}

// Axes are aligned at the right. Those that are repeated to a size stay, but of zeros, which are
// what masked entries are: these have as many as one likes.
Refusal couple_expanded(Node node, Couplings& couplings) {
  Value in = node.input(0), out = node.output();
  const size_t own = couplings.rank(in), rank = couplings.rank(out);
  const std::optional<Sizes> sizes = Sizes::of(node);
  if (own > rank || !sizes || sizes->count() > rank) return "its sizes are computed";
  for (size_t axis = 0; axis < rank; ++axis) {
    const int to = couplings.slot(out, axis);
    const int from = axis + own < rank ? kNoSlot : couplings.slot(in, axis + own - rank);
    const size_t unstated = rank - sizes->count();
    const bool is_number = axis < unstated || (*sizes)[axis - unstated].has_value();
    const bool passes = from != kNoSlot && to != kNoSlot;
    if (is_number && passes && couplings.size(from) == couplings.size(to)) {
      couplings.join(from, to, node);
    } else if (!is_number || !are_zeros(numbers_of(in))) {
      for (int slot : {from, to})
        couplings.protect(
            slot, cat(node_text(node), is_number ? " states its size" : " computes its size"));
    }
  }
  return std::nullopt;
}

// Without data: zeros of as many sizes as are stated.
Refusal couple_filled(Node node, Couplings& couplings) {
  const std::optional<Sizes> sizes = Sizes::of(node);
  if (!sizes || sizes->count() != couplings.rank(node.output())) return "its sizes are computed";
  const bool zeros = fills_with_zeros(node);
  for (size_t axis = 0; axis < sizes->count(); ++axis)
    if (!zeros || !(*sizes)[axis])
      couplings.protect(couplings.slot(node.output(), axis),
                        cat(node_text(node), zeros ? " computes its size" : " states its size"));
  return std::nullopt;
}

// From which axis on numbers are normalized together; nothing: they are not.
std::optional<size_t> first_normalized(Node node) {
  Stated stated(node);
  const size_t rank = node.input(0).type().rank();
  if (stated.names("groups")) return axis_in(1, rank);
  return stated.names("statistics") ? axis_in(stated.integer("statistics", -1), rank)
                                    : std::nullopt;
}

// Groups of channels: the same entry of each goes, so that they stay equal.
Refusal couple_groups(Node node, const tn_axes& axes, Couplings& couplings) {
  if (Refusal refused = couple_axes(node, axes, couplings)) return refused;
  Value data = node.input(0);
  const int channels = couplings.slot(data, 1);
  const int64_t groups = Stated(node).integer("groups", 0);
  if (channels == kNoSlot || groups < 1 || couplings.size(channels) % groups != 0)
    return "how many channels a group has is not known";
  const int64_t each = couplings.size(channels) / groups;
  for (int64_t i = each; i < couplings.size(channels); ++i)
    couplings.join(channels, i, channels, i % each);
  for (size_t axis = 2; axis < couplings.rank(data); ++axis)
    couplings.protect(couplings.slot(data, axis), cat(node_text(node), " mixes its entries"));
  return std::nullopt;
}

Refusal couple_same(Node node, Couplings& couplings) {
  if (Stated(node).names("value")) return couple_filled(node, couplings);
  if (Stated(node).names("sizes")) return couple_expanded(node, couplings);
  const tn_axes* axes = node.axes();  // of scales and biases too
  if (axes && Stated(node).names("groups")) return couple_groups(node, *axes, couplings);
  if (axes && Stated(node).names("statistics")) return couple_axes(node, *axes, couplings);
  for (Value out : node.outputs())
    for (size_t axis = 0; out && axis < couplings.rank(out); ++axis)
      couplings.join(couplings.slot(node.input(0), axis), couplings.slot(out, axis), node);
  return std::nullopt;
}

Status rewrite_sizes(EditView edit, Node node, const Kept& kept) {
  std::optional<Sizes> sizes = Sizes::of(node);
  if (!sizes) return {};
  const size_t unstated = node.output().type().rank() - sizes->count();
  for (size_t i = 0; i < sizes->count(); ++i)
    if ((*sizes)[i] != 1 && kept(node.output(), unstated + i))
      sizes->set(i, size_after(node.output(), unstated + i, kept));
  return sizes->write(edit, node);
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
  const std::optional<size_t> first = first_normalized(node);
  if (!first) return {};
  Value data = node.input(0), result = node.output();
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

constexpr Rule kRules[] = {{TN_COUPLING_SAME, couple_same, rewrite_sizes, mask_same}};

}  // namespace

std::span<const Rule> same_rules() {
  return kRules;
}

}  // namespace tenon::pruner
