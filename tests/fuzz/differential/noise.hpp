// SPDX-License-Identifier: Apache-2.0
#pragma once
// A graph that computes the same but for rounding: floating-point values are multiplied by 1 +
// noise, element by element. What noise moves, rounding may move.

#include <map>
#include <string>

#include "mutants/mutation.hpp"

namespace tenon::fuzz {

struct Noise {
  double size;  // relative
  // Also where no node gives a floating-point value that noise could be put at:
  // - numbers that enter the graph exactly and are added up, and results that are nothing beside
  //   what they were made of: they become 0 (a sum that is 0 in one order of addition and 1e-8 in
  //   another jumps in a Cast to bool), or those that are 0 become nearly that;
  // - numbers within a row that reads and gives integers (a tie of a quantized product), which are
  //   seen where the row says how it decomposes.
  bool is_deep = false;
  // Also between the steps of any other row that decomposes: what cancels there is rounded at the
  // size of what it is made of (the slope of a norm over two elements is 0 beside products of 1e9).
  bool is_open = false;
  // Nothing moves, and all results that are nothing beside what they were made of become 0: what is
  // 0 by equal numbers alone (the distance of each from their mean) is no longer that among moved
  // ones.
  bool only_flushes = false;
  std::map<std::string, double> largest = {};  // number of a value, by name
};

// What the last place of a short element type is worth, 0 for types of 32 bits and more.
double precision_of(uint32_t dtype);
Result<OwnedGraph> noisy(const tn_graph* graph, const Noise& noise, Random random);

}  // namespace tenon::fuzz
