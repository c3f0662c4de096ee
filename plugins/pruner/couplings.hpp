// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which entries of which axes can only be removed together. Every axis of known size (a slot) of
// every value has one atom per entry; coupling is union-find over atoms. So a slice, a
// concatenation of a value with itself or a block of a flattened axis needs no case of its own:
// each is some unions. Atoms that must stay are protected with the reason, and so is all that is
// coupled with them. After Fang et al., DepGraph (CVPR 2023), with index maps spelled out as atoms.

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/sdk/graph.hpp"

namespace tenon::pruner {

// What a constant's axis is to the channels along it.
enum class Kind : uint8_t { kNone, kVector, kReads, kMakes };

struct Slot {
  Value value;  // falsy: an axis of a node's signature
  int64_t axis = 0;
  int64_t first = 0;  // atom
  int64_t size = 0;
  Kind kind = Kind::kNone;  // of constants
  Node user = {};           // that made it this kind
  uint64_t input = 0;
};

inline constexpr int kNoSlot = -1;

// An axis that a view makes of several, or several of one: `whole` has an entry for each
// combination of entries of the factors, the first varying slowest. Channels run along one factor.
struct Fold {
  Node node;
  size_t segment = 0;  // which of the node's
  int whole = kNoSlot;
  std::vector<int> factors;
  size_t pivot = 0;  // the factor that channels run along
};

// The factors chosen so far, by node and segment; the outermost where none is named.
using Pivots = std::map<std::pair<tn_node_id, size_t>, size_t>;

class Couplings {
 public:
  explicit Couplings(Pivots pivots = {}) : pivots_(std::move(pivots)) {}

  // Axes beyond this many entries are no channels: sequences of samples, pixels.
  static constexpr int64_t kLargest = int64_t{1} << 20;

  // The slot of an axis, or kNoSlot where its size is not known. Axes count from 0.
  int slot(Value value, size_t axis);
  int known_slot(Value value, size_t axis) const;  // kNoSlot as well before the first query
  size_t rank(Value value);                        // 0 as well where it is not known
  bool is_ranked(Value value);
  // An axis that only this node's signature knows.
  int local(int64_t size);
  int64_t size(int slot) const { return slots_[static_cast<size_t>(slot)].size; }

  void join(int a, int64_t at, int b, int64_t bt);
  // Entry by entry; slots of different sizes are both protected.
  void join(int a, int b, Node node);
  void protect(int slot, std::string_view why);
  void protect_all(Value value, std::string_view why);
  // Joins the entries of `whole` with those of the chosen factor; the other factors stay whole,
  // which another choice would change.
  void fold(Node node, size_t segment, int whole, const std::vector<int>& factors);
  // A constant's axis: kMakes wins over kReads over kVector.
  void mark(int slot, Kind kind, Node user, uint64_t input);

  int64_t find(int64_t atom) const;
  const std::vector<Slot>& slots() const { return slots_; }
  int64_t n_atoms() const { return static_cast<int64_t>(parent_.size()); }
  // For the class of each root: why it must stay, or nullptr.
  const std::string* why_kept(int64_t root) const;
  // Whether other choices of factors might free it.
  bool is_kept_by_folds(int64_t root) const;
  void finish();  // after the last join and protect
  const std::vector<Fold>& folds() const { return folds_; }

 private:
  const std::vector<int>& slots_of(Value value);
  int make(int64_t size);
  void protect(int slot, std::string_view why, bool by_fold);

  struct Protected {
    int slot;
    int32_t reason;
    bool by_fold;
  };

  mutable std::vector<int32_t> parent_;
  std::vector<Slot> slots_;
  std::unordered_map<tn_value_id, std::vector<int>> by_value_;
  std::unordered_map<tn_value_id, bool> ranked_;
  std::vector<std::string> reasons_;
  std::unordered_map<std::string, int32_t> reason_numbers_;
  std::vector<Protected> protected_;
  std::vector<int32_t> reason_of_root_;
  std::vector<bool> is_kept_by_folds_;  // by root
  Pivots pivots_;
  std::vector<Fold> folds_;
};

// "conv1 (Conv)", for messages.
std::string node_text(Node node);

}  // namespace tenon::pruner
