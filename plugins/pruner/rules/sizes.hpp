// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes that a node is given (key `sizes`): numbers, and in models that leave sizes open some that
// are computed, between which a Concat puts the numbers.

#include <optional>
#include <utility>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::pruner {

class Sizes {
 public:
  // Nothing where the node has none, or it is not known how many there are.
  static std::optional<Sizes> of(Node node);
  size_t count() const;
  std::optional<int64_t> operator[](size_t i) const;  // nothing: it is computed
  // Of a number; computed ones stay.
  void set(size_t i, int64_t size);
  // Gives the node what has been set.
  Status write(EditView edit, Node node) const;

 private:
  struct Part {  // one of the values that follow each other
    Value value;
    std::vector<std::optional<int64_t>> sizes;
    bool is_changed = false;
  };
  bool collect(Value value);
  // Where size i is: which part, and which of its numbers.
  std::pair<size_t, size_t> place(size_t i) const;

  std::vector<Part> parts_;
  Node joiner_;  // a Concat
};

// The axis of a value whose size a Shape reads.
struct SizeOf {
  Value value;
  size_t axis = 0;
};
// Where each size that a view is given comes from: an axis, or nothing for a number. Nothing at all
// where one is computed in another way.
std::optional<std::vector<std::optional<SizeOf>>> sources_of_sizes(Node view);
// Which of the sizes that it gets a node hands on; nothing: all of them.
std::optional<std::vector<int64_t>> taken_sizes(Node user, int64_t n_sizes);
// Whether the sizes that this node reads from a Shape become those of views alone, of which all
// sources are known.
bool serves_views(Node user, uint64_t input);

}  // namespace tenon::pruner
