// SPDX-License-Identifier: Apache-2.0
#include "signature.hpp"

#include <algorithm>

#include "tenon/sdk/coupling.hpp"

namespace tenon::pruner {

std::string Signature::bind_of(uint32_t label) const {
  const tn_axes_label& at = axes_.labels[label];
  return {axes_.text + at.bind_offset, at.bind_len};
}

// Which labels stand at each axis, as the host has laid them.
bool Signature::place(const std::vector<tn_axes_place>& laid) {
  uint32_t last_operand = UINT32_MAX, last_dim = UINT32_MAX;
  std::map<uint32_t, size_t> n_axes;  // by operand
  for (const tn_axes_place& one : laid) {
    const tn_axes_term& term = axes_.terms[one.term];
    bool is_input = one.operand < node_.n_inputs();
    uint64_t index = is_input ? one.operand : one.operand - node_.n_inputs();
    Value value = is_input ? node_.input(index) : node_.output(index);
    bool same_axis =
        (term.flags & TN_AXES_TERM_GROUPED) && one.operand == last_operand && term.dim == last_dim;
    last_operand = one.operand;
    last_dim = term.dim;
    if (!value) continue;
    if (same_axis) {
      places_.back().factors.push_back({term.label, 0, term.flags, term.size});
      continue;
    }
    n_axes[one.operand] += one.count;
    for (uint32_t i = 0; i < one.count; ++i) {
      int64_t position = term.flags & TN_AXES_TERM_BATCH ? one.count - 1 - i : i;
      places_.push_back(
          {value, one.axis + i, is_input, index, {{term.label, position, term.flags, term.size}}});
    }
  }
  for (const Place& place : places_) {
    auto operand = static_cast<uint32_t>(place.index + (place.is_input ? 0 : node_.n_inputs()));
    if (place.value.type().rank() != n_axes[operand]) return false;
  }
  return true;
}

void Signature::bound_sizes() {
  for (uint32_t l = 0; l < axes_.n_labels; ++l)
    if (axes_.labels[l].kind == TN_AXES_SINGLE && axes_.labels[l].bind_len)
      sizes_[{l, 0}] = node_.attr_int(bind_of(l), 1);
}

void Signature::sizes_of_axes() {
  for (const Place& place : places_) {
    const Factor& one = place.factors[0];
    if (place.factors.size() > 1 || one.label == TN_AXES_NO_LABEL ||
        (one.flags & TN_AXES_TERM_PRIMED))
      continue;
    int64_t dim = place.value.type().dims[place.axis];
    auto [at, fresh] = sizes_.try_emplace({one.label, one.position}, dim);
    // A batch has the longest; what is not known gives way to nothing, to stay on the safe side.
    if (!fresh && is_batch(one) && (at->second == 1 || dim < 0)) at->second = dim;
    if (!fresh && !is_batch(one) && dim < 0) at->second = -1;
  }
}

void Signature::sizes_of_groups() {
  for (const Place& place : places_) {
    if (place.factors.size() != 2) continue;
    int64_t dim = place.value.type().dims[place.axis];
    int64_t first = size_of(place.factors[0]), second = size_of(place.factors[1]);
    if (dim >= 0 && first > 0 && second < 0) sizes_[{place.factors[1].label, 0}] = dim / first;
    if (dim >= 0 && second > 0 && first < 0) sizes_[{place.factors[0].label, 0}] = dim / second;
  }
}

int64_t Signature::size_of(const Factor& factor) const {
  if (factor.label == TN_AXES_NO_LABEL) return static_cast<int64_t>(factor.size);
  auto found = sizes_.find({factor.label, factor.position});
  return found == sizes_.end() ? -1 : found->second;
}

std::optional<Signature> Signature::lay(Node node, const tn_axes& axes) {
  if (node.n_outputs() > axes.n_outputs) return std::nullopt;
  std::optional<std::vector<tn_axes_place>> laid = axes_places(node);
  Signature out(node, axes);
  if (!laid || !out.place(*laid)) return std::nullopt;
  out.bound_sizes();
  out.sizes_of_axes();
  out.sizes_of_groups();
  return out;
}

// One entry per group on the reading side: the labels that stand in a group of an input and also
// alone ("n (g c) s.., (g o) c k.."), all of size 1.
bool Signature::is_depthwise() const {
  bool any = false;
  for (const Place& group : places_) {
    if (group.factors.size() != 2 || !group.is_input) continue;
    for (const Place& alone : places_) {
      if (alone.factors.size() != 1 || !alone.factors[0].is_same(group.factors[1])) continue;
      any = true;
      if (size_of(group.factors[1]) != 1) return false;
    }
  }
  return any;
}

const Factor* Signature::pivot(const Place& place) const {
  if (place.factors.size() != 2) return nullptr;
  for (size_t literal : {0, 1})  // "(2 c)": halves stay halves
    if (place.factors[literal].label == TN_AXES_NO_LABEL) return &place.factors[1 - literal];
  bool whole_groups = size_of(place.factors[0]) != 1 && is_depthwise();
  return &place.factors[whole_groups ? 0 : 1];
}

}  // namespace tenon::pruner
