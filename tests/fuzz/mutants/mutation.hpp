// SPDX-License-Identifier: Apache-2.0
#pragma once
// One change of a valid node that its operator may or may not allow: a dimension, a rank, an
// element type, an attribute, an element of a constant, an input that is left out.

#include <cstdint>
#include <string>

#include "tenon/sdk/edit.hpp"

namespace tenon::fuzz {

// splitmix64 (Steele et al., OOPSLA 2014): the same numbers everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(next() % n); }
  template <class List>
  auto one_of(const List& list) {
    return list[below(std::size(list))];
  }
  bool one_in(size_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

// Numbers for every element of a tensor, in [-2, 2] and not negative where its type is an integer
// of less than 64 bits: what samples allow. `repeat` takes elements of another tensor first.
Result<Tensor> filled(tn_ctx* ctx, const Type& type, Random& random, const Tensor& repeat = {});

// Puts NaN, infinities, -0, the ends of integers and other bits at some elements: what samples do
// not allow and users may still give. The numbers that follow mean nothing.
void make_wild(Tensor& tensor, Random& random);

// Changes the node or what it reads; says what was changed. A change that the host refuses at once
// is a failure.
// node: another one afterwards where it had to be replaced.
Result<std::string> mutate(EditView edit, Node& node, Random& random);

// Puts one of the ends of integers at one place of those where the node states an integer: its
// attributes and elements of its small constants. `which` counts places and ends through, round
// and round, so that a sweep leaves none out.
Result<std::string> set_extreme(EditView edit, Node node, uint64_t which);

}  // namespace tenon::fuzz
