// SPDX-License-Identifier: Apache-2.0
// TreeEnsemble of ai.onnx.ml: decision trees whose leaves add weights to targets.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "numbers.hpp"
#include "sampling.hpp"
#include "stated.hpp"

namespace tenon::ops {
namespace {

using Numbers = std::vector<double>;

enum Mode { kLessOrEqual, kLess, kGreaterOrEqual, kGreater, kEqual, kNotEqual, kMember, kModes };
enum Aggregate { kAverage, kSum, kMin, kMax };
enum Transform { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

Numbers tensor_numbers(Node node, std::string_view name) {
  tn_any any = node.attr(name);
  Numbers out;
  if (any.tag != TN_ANY_TENSOR) return out;
  Tensor tensor = Tensor::share(static_cast<tn_tensor*>(const_cast<void*>(any.v.p)));
  DLTensor dl = tensor.dl();
  for (int64_t i = 0; i < element_count(dl); ++i)
    out.push_back(load_number(data_of<char>(dl), dtype_of(dl), i));
  return out;
}

struct Branch {
  Mode mode;
  int64_t feature, yes, no;
  bool yes_is_leaf, no_is_leaf, missing_is_yes;
  double split;
  Numbers members;
};
struct Ensemble {
  std::vector<Branch> branches;
  Ints roots, targets;
  Numbers weights;
  int64_t n_targets;
};

Status tree_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  Dim rows = x.ranked && x.rank() == 2 ? dims_of(x)[0] : Dim();
  const int64_t n_targets = node.attr_int("n_targets", 1);
  TN_CHECK(expect_moderate("n_targets", {n_targets}, 1));
  return set_output(edit, node, 0, x.dtype, {rows, n_targets});
}

bool inside(int64_t at, int64_t size) {
  return at >= 0 && at < size;
}

// What the attributes say of the nodes, each a list with an entry for every node.
struct NodeLists {
  Ints feature, yes, no, yes_leaf, no_leaf, missing;
  Numbers modes, splits;

  static NodeLists of(Node node) {
    return {.feature = node.attr_ints("nodes_featureids"),
            .yes = node.attr_ints("nodes_truenodeids"),
            .no = node.attr_ints("nodes_falsenodeids"),
            .yes_leaf = node.attr_ints("nodes_trueleafs"),
            .no_leaf = node.attr_ints("nodes_falseleafs"),
            .missing = node.attr_ints("nodes_missing_value_tracks_true"),
            .modes = tensor_numbers(node, "nodes_modes"),
            .splits = tensor_numbers(node, "nodes_splits")};
  }
  size_t size() const { return feature.size(); }
  bool are_of_one_size() const {
    return std::ranges::all_of(std::array{yes.size(), no.size(), yes_leaf.size(), no_leaf.size(),
                                          modes.size(), splits.size()},
                               [this](size_t n) { return n == size(); });
  }
  bool fits(size_t i, int64_t features, int64_t leaves) const {
    auto count = static_cast<int64_t>(size());
    return inside(static_cast<int64_t>(modes[i]), kModes) && inside(feature[i], features) &&
           inside(yes[i], yes_leaf[i] ? leaves : count) &&
           inside(no[i], no_leaf[i] ? leaves : count);
  }
  Branch branch(size_t i) const {
    return {static_cast<Mode>(static_cast<int>(modes[i])),
            feature[i],
            yes[i],
            no[i],
            yes_leaf[i] != 0,
            no_leaf[i] != 0,
            i < missing.size() && missing[i] != 0,
            splits[i],
            {}};
  }
};

Result<Ensemble> ensemble_of(Node node, int64_t features) {
  NodeLists nodes = NodeLists::of(node);
  Numbers members = tensor_numbers(node, "membership_values");
  Ensemble out{{},
               node.attr_ints("tree_roots"),
               node.attr_ints("leaf_targetids"),
               tensor_numbers(node, "leaf_weights"),
               node.attr_int("n_targets", 1)};
  const size_t n = nodes.size();
  if (!nodes.are_of_one_size() || out.weights.size() != out.targets.size())
    return invalid(
        cat("expected lists of ", n, " nodes, and as many leaf_weights as leaf_targetids"));
  auto leaves = static_cast<int64_t>(out.targets.size()), count = static_cast<int64_t>(n);
  size_t next = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!nodes.fits(i, features, leaves))
      return invalid(cat("node ", i, ": expected a mode, a feature and places that exist"));
    Branch branch = nodes.branch(i);
    if (branch.mode == kMember) {  // the sets stand in a row, with NaN between them
      for (; next < members.size() && !std::isnan(members[next]); ++next)
        branch.members.push_back(members[next]);
      ++next;
    }
    out.branches.push_back(std::move(branch));
  }
  for (int64_t root : out.roots)
    if (!inside(root, count))
      return invalid(cat("tree_roots: expected 0..", count - 1, ", got ", root));
  for (int64_t target : out.targets)
    if (!inside(target, out.n_targets))
      return invalid(cat("leaf_targetids: expected 0..", out.n_targets - 1, ", got ", target));
  return out;
}

bool goes_yes(const Branch& b, double x) {
  if (std::isnan(x)) return b.missing_is_yes;
  switch (b.mode) {
    case kLessOrEqual:
      return x <= b.split;
    case kLess:
      return x < b.split;
    case kGreaterOrEqual:
      return x >= b.split;
    case kGreater:
      return x > b.split;
    case kEqual:
      return x == b.split;
    case kNotEqual:
      return x != b.split;
    default:
      return std::find(b.members.begin(), b.members.end(), x) != b.members.end();
  }
}

// The leaf of one tree; more steps than there are nodes are a cycle.
template <class Feature>
Result<int64_t> leaf_of(const Ensemble& e, int64_t root, const Feature& feature) {
  int64_t at = root;
  for (size_t step = 0; step < e.branches.size(); ++step) {
    const Branch& b = e.branches[static_cast<size_t>(at)];
    bool yes = goes_yes(b, feature(b.feature));
    at = yes ? b.yes : b.no;
    if (yes ? b.yes_is_leaf : b.no_is_leaf) return at;
  }
  return invalid(cat("tree ", root, ": expected a leaf at the end, got a cycle"));
}

// The inverse of the normal distribution by Winitzki (2008) for erf, as ONNX's Probit wants it.
double probit(double p) {
  double x = 2 * p - 1, log = std::log((1 - x) * (1 + x)), a = 0.147;
  double t = 2 / (3.14159265358979 * a) + log / 2;
  double inverse = std::copysign(std::sqrt(std::sqrt(t * t - log / a) - t), x);
  return std::sqrt(2.0) * inverse;
}

void transform(Numbers& row, int64_t how) {
  if (how == kLogistic)
    for (double& x : row)
      x = 1 / (1 + std::exp(-x));
  if (how == kProbit)
    for (double& x : row)
      x = probit(x);
  if (how != kSoftmax && how != kSoftmaxZero) return;
  double highest = *std::max_element(row.begin(), row.end()), sum = 0;
  for (double& x : row)
    sum += x = how == kSoftmaxZero && x == 0 ? 0 : std::exp(x - highest);
  for (double& x : row)
    x = sum == 0 ? 0 : x / sum;
}

Status tree_ref(const Call& call) {
  Node node = call.node();
  std::span<const int64_t> x = call.shape(0);
  int64_t how = node.attr_int("aggregate_function", kSum), after = node.attr_int("post_transform");
  if (x.size() != 2 || how < kAverage || how > kMax || after < kNone || after > kProbit)
    return invalid("expected x [n, features], aggregate_function 0..3 and post_transform 0..4");
  TN_TRY(ensemble, ensemble_of(node, x[1]));
  TN_TRY(out, call.out(0, call.dtype(0), {x[0], ensemble.n_targets}));
  for (int64_t row = 0; row < x[0]; ++row) {
    constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();
    Numbers sums(static_cast<size_t>(ensemble.n_targets), kUnset);
    auto feature = [&](int64_t i) {
      return load_number(call.data<char>(0), call.dtype(0), row * x[1] + i);
    };
    for (int64_t root : ensemble.roots) {
      TN_TRY(leaf, leaf_of(ensemble, root, feature));
      double& sum = sums[static_cast<size_t>(ensemble.targets[static_cast<size_t>(leaf)])];
      double weight = ensemble.weights[static_cast<size_t>(leaf)];
      if (std::isnan(sum))
        sum = weight;
      else
        sum = how == kMin   ? std::min(sum, weight)
              : how == kMax ? std::max(sum, weight)
                            : sum + weight;
    }
    for (double& sum : sums) {
      if (std::isnan(sum)) sum = 0;
      if (how == kAverage) sum /= static_cast<double>(ensemble.roots.size());
    }
    transform(sums, after);
    for (int64_t t = 0; t < ensemble.n_targets; ++t)
      store_number(data_of<char>(out), call.dtype(0), row * ensemble.n_targets + t,
                   sums[static_cast<size_t>(t)]);
  }
  return {};
}

// Two splits on two features, three leaves.
Result<Node> tree_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 5), 2}));
  TN_TRY(modes, Tensor::of<uint8_t>(edit.ctx(), TN_U8, std::vector<int64_t>{2},
                                    std::vector<uint8_t>{0, 3}));
  TN_TRY(splits, Tensor::of<float>(edit.ctx(), TN_F32, std::vector<int64_t>{2},
                                   std::vector<float>{0.5f, -1}));
  TN_TRY(weights, Tensor::of<float>(edit.ctx(), TN_F32, std::vector<int64_t>{3},
                                    std::vector<float>{1, 2, 3}));
  Ints features{0, 1}, yes{0, 1}, no{1, 2}, yes_leaf{1, 1}, no_leaf{0, 1}, roots{0},
      targets{0, 1, 0};
  return edit.add({.type = "TreeEnsemble",
                   .inputs = {x},
                   .attrs = {{"nodes_modes", any_tensor(modes)},
                             {"nodes_splits", any_tensor(splits)},
                             {"leaf_weights", any_tensor(weights)},
                             {"nodes_featureids", features},
                             {"nodes_truenodeids", yes},
                             {"nodes_falsenodeids", no},
                             {"nodes_trueleafs", yes_leaf},
                             {"nodes_falseleafs", no_leaf},
                             {"tree_roots", roots},
                             {"leaf_targetids", targets},
                             {"n_targets", 2},
                             {"aggregate_function", random.integer(0, 3)},
                             {"post_transform", random.integer(0, 3)}},
                   .domain = "ai.onnx.ml"});
}

constexpr tn_op kTrees =
    op_row({.type = "TreeEnsemble",
            .since = 5,
            .domain = "ai.onnx.ml",
            .attributes = R"([{"name": "aggregate_function", "type": "int", "default": 1},
                                {"name": "leaf_targetids", "type": "ints"},
                                {"name": "leaf_weights", "type": "tensor"},
                                {"name": "membership_values", "type": "tensor"},
                                {"name": "n_targets", "type": "int"},
                                {"name": "nodes_falseleafs", "type": "ints"},
                                {"name": "nodes_falsenodeids", "type": "ints"},
                                {"name": "nodes_featureids", "type": "ints"},
                                {"name": "nodes_hitrates", "type": "tensor"},
                                {"name": "nodes_missing_value_tracks_true", "type": "ints"},
                                {"name": "nodes_modes", "type": "tensor"},
                                {"name": "nodes_splits", "type": "tensor"},
                                {"name": "nodes_trueleafs", "type": "ints"},
                                {"name": "nodes_truenodeids", "type": "ints"},
                                {"name": "post_transform", "type": "int", "default": 0},
                                {"name": "tree_roots", "type": "ints"}])",
            .shape = shape<tree_shape, "x: float[n f]">,
            .cost = cost<move_cost>,
            .ref = ref<tree_ref>,
            .sample = sample<tree_sample>});

}  // namespace

TENON_OPS(tree_ensemble, &kTrees)

}  // namespace tenon::ops
