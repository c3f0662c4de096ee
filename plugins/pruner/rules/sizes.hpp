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

// The value all of whose sizes a view is given as its own, by a Shape between them; or none.
Value sized_as(Node view);

}  // namespace tenon::pruner
