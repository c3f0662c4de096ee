// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decision trees whose leaves add weights to targets, as the tree operators of ai.onnx.ml hold
// them: all leaves and splits of all trees in one list, and the walk through them.

#include <cstdint>
#include <string_view>
#include <vector>

#include "tenon/sdk/build.hpp"

namespace tenon::ops::forest {

using Ints = std::vector<int64_t>;
using Numbers = std::vector<double>;

// In the order of TreeEnsemble's numbers.
enum Mode { kLessOrEqual, kLess, kGreaterOrEqual, kGreater, kEqual, kNotEqual, kMember, kModes };
enum Aggregate { kAverage, kSum, kMin, kMax };

// A node is a number: leaves from 0, splits behind them.
struct Split {
  Mode mode = kLessOrEqual;
  int64_t feature = 0, yes = 0, no = 0;  // yes, no: nodes
  bool missing_is_yes = false;           // where NaN goes if the comparison does not take it
  double limit = 0;
  Numbers members = {};  // of kMember
};
struct Weight {
  int64_t leaf = 0, target = 0;
  double number = 0;
};
struct Forest {
  int64_t n_leaves = 0, n_targets = 1;
  std::vector<Split> splits = {};
  std::vector<Weight> weights = {};
  Ints roots = {};  // nodes
  Aggregate how = kSum;

  bool is_leaf(int64_t node) const { return node < n_leaves; }
  const Split& split(int64_t node) const { return splits[static_cast<size_t>(node - n_leaves)]; }
};

bool goes_yes(const Split& split, double x);
// Steps from the roots to the deepest leaf; a cycle is an error.
Result<int64_t> depth_of(const Forest& forest);

// What the leaves add up to, [rows, targets], in operators that every backend has: one step of all
// trees at once for each level. x: [rows, features] f32 or f64.
Value sums(Builder& b, Value x, const Forest& forest);

// An attribute that is a tensor, as numbers; empty where it is absent.
Numbers tensor_numbers(Node node, std::string_view name);

}  // namespace tenon::ops::forest
