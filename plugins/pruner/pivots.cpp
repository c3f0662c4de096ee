// SPDX-License-Identifier: Apache-2.0
#include "pivots.hpp"

#include <algorithm>

#include "groups.hpp"

namespace tenon::pruner {
namespace {

enum class State { kGivesChannels, kNoWeights, kKept, kKeptByFolds };

class Channels {
 public:
  explicit Channels(const Groups& groups)
      : couplings_(groups.couplings()),
        n_channels_(couplings_.n_atoms()),
        made_(n_channels_.size()) {
    for (const Slot& slot : couplings_.slots())
      for (int64_t i = 0; slot.kind == Kind::kMakes && i < slot.size; ++i)
        made_[at(slot.first + i)] = true;
    for (const Group& group : groups.all())
      for (int64_t root : group.roots)
        n_channels_[static_cast<size_t>(root)] = group.n_channels();
  }

  State state_of(const Fold& fold) const {
    bool is_made = false, by_folds = false, otherwise = false;
    for (int64_t each : classes_of(fold))
      is_made = is_made || made_[static_cast<size_t>(each)];
    const Slot& whole = couplings_.slots()[static_cast<size_t>(fold.whole)];
    for (int64_t i = 0; i < whole.size; ++i) {
      size_t root = at(whole.first + i);
      // A group of one channel cannot lose any.
      if (n_channels_[root] > 1) return State::kGivesChannels;
      bool is_fold = couplings_.is_kept_by_folds(static_cast<int64_t>(root));
      by_folds = by_folds || is_fold;
      otherwise = otherwise || !is_fold;
    }
    if (!is_made) return State::kNoWeights;
    return by_folds && !otherwise ? State::kKeptByFolds : State::kKept;
  }

  std::set<int64_t> classes_of(const Fold& fold) const {
    std::set<int64_t> out;
    std::vector<int> slots = fold.factors;
    slots.push_back(fold.whole);
    for (int number : slots) {
      if (number == kNoSlot) continue;
      const Slot& slot = couplings_.slots()[static_cast<size_t>(number)];
      for (int64_t i = 0; i < slot.size; ++i)
        out.insert(couplings_.find(slot.first + i));
    }
    return out;
  }

 private:
  size_t at(int64_t atom) const { return static_cast<size_t>(couplings_.find(atom)); }

  const Couplings& couplings_;
  std::vector<size_t> n_channels_;  // of a root's group
  std::vector<bool> made_;          // by some weight
};

}  // namespace

bool PivotSearch::advance(const Fold& fold) {
  std::pair<tn_node_id, size_t> key{fold.node.id, fold.segment};
  if (exhausted_.contains(key)) return false;
  size_t next = fold.pivot + 1;
  if (next == fold.factors.size()) {
    exhausted_.insert(key);
    next = 0;
  }
  pivots_[key] = next;
  return true;
}

bool PivotSearch::advance(const Groups& groups) {
  Channels channels(groups);
  const std::vector<Fold>& folds = groups.couplings().folds();
  bool any = false;
  for (const Fold& fold : folds)
    if (channels.state_of(fold) == State::kKept) any |= advance(fold);
  if (any) return true;
  // Two that keep each other: one gives way, so that the halves of a channel shuffle agree.
  std::set<int64_t> given;
  for (const Fold& fold : folds) {
    std::set<int64_t> classes = channels.classes_of(fold);
    bool meets = std::any_of(classes.begin(), classes.end(),
                             [&](int64_t root) { return given.contains(root); });
    if (meets || channels.state_of(fold) != State::kKeptByFolds || !advance(fold)) continue;
    given.merge(classes);
    any = true;
  }
  return any;
}

}  // namespace tenon::pruner
