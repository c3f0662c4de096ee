// SPDX-License-Identifier: Apache-2.0
#pragma once
// Takes channels out of a graph: cuts every coupled constant, and brings up to date what nodes
// state. Or zeroes the same entries, which leaves all shapes as they are.

#include <unordered_map>
#include <vector>

#include "tenon/sdk/edit.hpp"

#include "groups.hpp"

namespace tenon::pruner {

class Removal {
 public:
  explicit Removal(const Groups& groups);
  // gone: for each channel of this group whether it goes.
  void add(const Group& group, const std::vector<bool>& gone);
  // Entries of an axis that stay; nullptr: all.
  const std::vector<int64_t>* kept(Value value, size_t axis) const;

  // Ends with nothing changed on failure, as the edit is rolled back.
  Status remove(EditView edit) const;
  Status mask(EditView edit) const;
  // Computed values that lose entries. What a file declared their sizes to be holds no more.
  std::vector<Value> shrunk() const;

 private:
  void decide() const;
  std::vector<Value> touched(Graph graph) const;

  const Groups& groups_;
  std::vector<bool> gone_;                                      // by root
  mutable std::unordered_map<int, std::vector<int64_t>> kept_;  // by slot, of touched ones
  mutable bool decided_ = false;
};

// The entries that stay along each axis (nullptr: all), as a new tensor of the same type.
Result<Tensor> cut(tn_ctx* ctx,
                   const Tensor& tensor,
                   const std::vector<const std::vector<int64_t>*>& kept);
// The same shape, with zeros at entries that do not stay.
Result<Tensor> masked(tn_ctx* ctx,
                      const Tensor& tensor,
                      const std::vector<const std::vector<int64_t>*>& kept);

// Puts another constant in the place of this one, under its name.
Status replace_constant(EditView edit, Value constant, const Tensor& tensor);

}  // namespace tenon::pruner
