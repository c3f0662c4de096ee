// SPDX-License-Identifier: Apache-2.0
#include "couplings.hpp"

#include <numeric>

namespace tenon::pruner {

std::string node_text(Node node) {
  return cat(node.name(), " (", node.type(), ")");
}

int Couplings::make(int64_t size) {
  int64_t first = n_atoms();
  parent_.resize(parent_.size() + static_cast<size_t>(size));
  std::iota(parent_.begin() + first, parent_.end(), static_cast<int32_t>(first));
  Slot made;
  made.first = first;
  made.size = size;
  slots_.push_back(made);
  return static_cast<int>(slots_.size()) - 1;
}

int Couplings::local(int64_t size) {
  return make(size);
}

const std::vector<int>& Couplings::slots_of(Value value) {
  auto [at, fresh] = by_value_.try_emplace(value.id);
  if (!fresh) return at->second;
  Type type = value.type();
  ranked_[value.id] = type.ranked;
  std::vector<int> made;
  for (size_t axis = 0; axis < type.rank(); ++axis) {
    int64_t size = type.dims[axis];
    // Atoms are numbered in 32 bits: what would not fit any more keeps its size.
    bool fits = size >= 0 && size <= kLargest && n_atoms() + size < int64_t{INT32_MAX};
    made.push_back(fits ? make(size) : kNoSlot);
    if (!fits) continue;
    slots_.back().value = value;
    slots_.back().axis = static_cast<int64_t>(axis);
  }
  at->second = std::move(made);
  return at->second;
}

int Couplings::slot(Value value, size_t axis) {
  const std::vector<int>& all = slots_of(value);
  return axis < all.size() ? all[axis] : kNoSlot;
}

int Couplings::known_slot(Value value, size_t axis) const {
  auto at = by_value_.find(value.id);
  return at == by_value_.end() || axis >= at->second.size() ? kNoSlot : at->second[axis];
}

size_t Couplings::rank(Value value) {
  return slots_of(value).size();
}

bool Couplings::is_ranked(Value value) {
  slots_of(value);
  return ranked_[value.id];
}

int64_t Couplings::find(int64_t atom) const {
  auto at = static_cast<size_t>(atom);
  while (parent_[at] != static_cast<int32_t>(at)) {
    parent_[at] = parent_[static_cast<size_t>(parent_[at])];  // path halving
    at = static_cast<size_t>(parent_[at]);
  }
  return static_cast<int64_t>(at);
}

void Couplings::join(int a, int64_t at, int b, int64_t bt) {
  int64_t x = find(slots_[static_cast<size_t>(a)].first + at);
  int64_t y = find(slots_[static_cast<size_t>(b)].first + bt);
  // The lower number is the root, so that the result does not depend on the order of joins.
  parent_[static_cast<size_t>(std::max(x, y))] = static_cast<int32_t>(std::min(x, y));
}

void Couplings::join(int a, int b, Node node) {
  if (a != kNoSlot && b != kNoSlot && size(a) == size(b)) {
    for (int64_t i = 0; i < size(a); ++i)
      join(a, i, b, i);
    return;
  }
  std::string why = cat(node_text(node), " meets an axis whose size is not known");
  protect(a, why);
  protect(b, why);
}

void Couplings::protect(int slot, std::string_view why) {
  protect(slot, why, false);
}

void Couplings::protect(int slot, std::string_view why, bool by_fold) {
  if (slot == kNoSlot) return;
  auto [at, fresh] =
      reason_numbers_.try_emplace(std::string(why), static_cast<int32_t>(reasons_.size()));
  if (fresh) reasons_.emplace_back(why);
  protected_.push_back({slot, at->second, by_fold});
}

void Couplings::fold(Node node, size_t segment, int whole, const std::vector<int>& factors) {
  auto chosen = pivots_.find({node.id, segment});
  size_t pivot = chosen == pivots_.end() ? 0 : chosen->second;
  for (size_t i = 0; i < factors.size(); ++i)
    if (i != pivot)
      protect(factors[i], cat("it is a factor of an axis that ", node_text(node), " joins"), true);
  int64_t inner = 1;
  bool known = whole != kNoSlot && factors[pivot] != kNoSlot && size(factors[pivot]) != 0;
  for (size_t i = pivot + 1; known && i < factors.size(); ++i) {
    known = factors[i] != kNoSlot;
    if (known) inner *= size(factors[i]);
  }
  // The size of an outermost factor alone says how long its blocks are.
  if (pivot == 0 && whole != kNoSlot && factors[0] != kNoSlot && size(factors[0]) != 0) {
    inner = size(whole) / size(factors[0]);
    known = true;
  }
  if (!known) {
    join(whole, factors[pivot], node);
    return;
  }
  for (int64_t i = 0; i < size(whole); ++i)
    join(whole, i, factors[pivot], i / inner % size(factors[pivot]));
  folds_.push_back({node, segment, whole, factors, pivot});
}

void Couplings::protect_all(Value value, std::string_view why) {
  for (size_t axis = 0, n = rank(value); axis < n; ++axis)
    protect(slot(value, axis), why);
}

void Couplings::mark(int slot, Kind kind, Node user, uint64_t input) {
  if (slot == kNoSlot) return;
  Slot& at = slots_[static_cast<size_t>(slot)];
  if (!at.value || !at.value.is_constant() || at.kind >= kind) return;
  at.kind = kind;
  at.user = user;
  at.input = input;
}

void Couplings::finish() {
  reason_of_root_.assign(parent_.size(), -1);
  is_kept_by_folds_.assign(parent_.size(), false);
  for (const Protected& one : protected_) {
    const Slot& at = slots_[static_cast<size_t>(one.slot)];
    for (int64_t i = 0; i < at.size; ++i) {
      auto root = static_cast<size_t>(find(at.first + i));
      int32_t& known = reason_of_root_[root];
      // What no choice of factors changes is the reason to report.
      bool is_better = known < 0 || (is_kept_by_folds_[root] && !one.by_fold);
      if (!is_better) continue;
      known = one.reason;
      is_kept_by_folds_[root] = one.by_fold;
    }
  }
}

bool Couplings::is_kept_by_folds(int64_t root) const {
  return is_kept_by_folds_[static_cast<size_t>(root)];
}

const std::string* Couplings::why_kept(int64_t root) const {
  int32_t reason = reason_of_root_[static_cast<size_t>(root)];
  return reason < 0 ? nullptr : &reasons_[static_cast<size_t>(reason)];
}

}  // namespace tenon::pruner
