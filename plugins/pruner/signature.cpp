// SPDX-License-Identifier: Apache-2.0
#include "signature.hpp"

#include <algorithm>

namespace tenon::pruner {

std::string Signature::bind_of(uint32_t label) const {
  const tn_axes_label& at = axes_.labels[label];
  return {axes_.text + at.bind_offset, at.bind_len};
}

// Operands that are there, with their values; inputs first.
std::vector<std::pair<Value, const tn_axes_operand*>> Signature::operands() const {
  std::vector<std::pair<Value, const tn_axes_operand*>> out;
  for (uint32_t i = 0; i < axes_.n_inputs; ++i)
    if (Value v = node_.input(i)) out.emplace_back(v, &axes_.operands[i]);
  for (uint32_t i = 0; i < axes_.n_outputs; ++i)
    if (Value v = node_.output(i)) out.emplace_back(v, &axes_.operands[axes_.n_inputs + i]);
  return out;
}

// Lengths of runs: from attributes, then from ranks, until nothing changes (abi/axes.md).
bool Signature::solve_runs() {
  run_lengths_.assign(axes_.n_labels, -1);
  for (uint32_t l = 0; l < axes_.n_labels; ++l) {
    if (axes_.labels[l].kind != TN_AXES_RUN || axes_.labels[l].bind_len == 0) continue;
    int64_t length = node_.attr_int(bind_of(l));
    if (length < 0) length += static_cast<int64_t>(node_.input(0).type().rank());
    run_lengths_[l] = length;
  }
  bool all_known = false;
  for (uint32_t round = 0; round <= axes_.n_labels && !all_known; ++round) {
    all_known = true;
    for (const auto& [value, operand] : operands()) {
      int64_t fixed = operand->n_dims;
      uint32_t open = TN_AXES_NO_LABEL, n_open = 0;
      for (uint32_t t = 0; t < operand->n_terms; ++t) {
        const tn_axes_term& term = axes_.terms[operand->first_term + t];
        if (term.flags & TN_AXES_TERM_BATCH) n_open += 2;  // takes what is left: no equation
        if (!(term.flags & TN_AXES_TERM_RUN)) continue;
        --fixed;
        if (run_lengths_[term.label] >= 0) {
          fixed += run_lengths_[term.label];
        } else {
          open = term.label;
          ++n_open;
        }
      }
      if (n_open == 1) run_lengths_[open] = static_cast<int64_t>(value.type().rank()) - fixed;
      all_known &= open == TN_AXES_NO_LABEL || run_lengths_[open] >= 0;
    }
  }
  return all_known;
}

bool Signature::place_operand(Value value,
                              const tn_axes_operand& operand,
                              bool is_input,
                              uint64_t index) {
  auto rank = static_cast<int64_t>(value.type().rank());
  int64_t fixed = operand.n_dims;
  for (uint32_t t = 0; t < operand.n_terms; ++t) {
    const tn_axes_term& term = axes_.terms[operand.first_term + t];
    if (term.flags & TN_AXES_TERM_RUN) fixed += run_lengths_[term.label] - 1;
    if (term.flags & TN_AXES_TERM_BATCH) fixed -= 1;
  }
  int64_t batch = rank - fixed, axis = 0;
  uint32_t last_dim = UINT32_MAX;
  for (uint32_t t = 0; t < operand.n_terms; ++t) {
    const tn_axes_term& term = axes_.terms[operand.first_term + t];
    int64_t count = 1;
    if (term.flags & TN_AXES_TERM_RUN) count = run_lengths_[term.label];
    if (term.flags & TN_AXES_TERM_BATCH) count = batch;
    bool same_axis = (term.flags & TN_AXES_TERM_GROUPED) && term.dim == last_dim;
    last_dim = term.dim;
    if (count < 0 || (!same_axis && axis + count > rank)) return false;
    if (same_axis) {
      places_.back().factors.push_back({term.label, 0, term.flags});
      continue;
    }
    for (int64_t i = 0; i < count; ++i, ++axis) {
      int64_t position = term.flags & TN_AXES_TERM_BATCH ? count - 1 - i : i;
      places_.push_back({value,
                         static_cast<size_t>(axis),
                         is_input,
                         index,
                         {{term.label, position, term.flags}}});
    }
  }
  return axis == rank;
}

// Sizes from attributes and from axes with one label, then from groups with one open factor.
void Signature::solve_sizes() {
  for (uint32_t l = 0; l < axes_.n_labels; ++l)
    if (axes_.labels[l].kind == TN_AXES_SINGLE && axes_.labels[l].bind_len)
      sizes_[{l, 0}] = node_.attr_int(bind_of(l), 1);
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
  for (const Place& place : places_) {
    if (place.factors.size() != 2) continue;
    int64_t dim = place.value.type().dims[place.axis];
    int64_t first = size_of(place.factors[0]), second = size_of(place.factors[1]);
    if (dim >= 0 && first > 0 && second < 0) sizes_[{place.factors[1].label, 0}] = dim / first;
    if (dim >= 0 && second > 0 && first < 0) sizes_[{place.factors[0].label, 0}] = dim / second;
  }
}

int64_t Signature::size_of(const Factor& factor) const {
  auto found = sizes_.find({factor.label, factor.position});
  return found == sizes_.end() ? -1 : found->second;
}

std::optional<Signature> Signature::lay(Node node, const tn_axes& axes) {
  if (node.n_inputs() > axes.n_inputs || node.n_outputs() > axes.n_outputs) return std::nullopt;
  Signature out(node, axes);
  if (!out.solve_runs()) return std::nullopt;
  for (uint32_t i = 0; i < axes.n_inputs; ++i) {
    Value v = node.input(i);
    if (v && !out.place_operand(v, axes.operands[i], true, i)) return std::nullopt;
  }
  for (uint32_t i = 0; i < axes.n_outputs; ++i) {
    Value v = node.output(i);
    const tn_axes_operand& operand = axes.operands[axes.n_inputs + i];
    if (v && !out.place_operand(v, operand, false, i)) return std::nullopt;
  }
  out.solve_sizes();
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
  bool whole_groups = size_of(place.factors[0]) != 1 && is_depthwise();
  return &place.factors[whole_groups ? 0 : 1];
}

}  // namespace tenon::pruner
