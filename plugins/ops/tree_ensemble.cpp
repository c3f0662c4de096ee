// SPDX-License-Identifier: Apache-2.0
// TreeEnsemble of ai.onnx.ml: decision trees whose leaves add weights to targets.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cost.hpp"
#include "dims.hpp"
#include "forest.hpp"
#include "numbers.hpp"
#include "sampling.hpp"
#include "scores.hpp"
#include "stated.hpp"

namespace tenon::ops {
namespace {

using forest::Forest;
using forest::Ints;
using forest::Numbers;
using forest::Split;
using forest::tensor_numbers;

enum Transform { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

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
    return inside(static_cast<int64_t>(modes[i]), forest::kModes) && inside(feature[i], features) &&
           inside(yes[i], yes_leaf[i] ? leaves : count) &&
           inside(no[i], no_leaf[i] ? leaves : count);
  }
  Split split(size_t i, int64_t leaves) const {
    return {.mode = static_cast<forest::Mode>(static_cast<int>(modes[i])),
            .feature = feature[i],
            .yes = yes_leaf[i] ? yes[i] : leaves + yes[i],
            .no = no_leaf[i] ? no[i] : leaves + no[i],
            .missing_is_yes = i < missing.size() && missing[i] != 0,
            .limit = splits[i]};
  }
};

// The sets of members stand in a row, with NaN between them.
void read_members(Node node, Forest* out) {
  const Numbers members = tensor_numbers(node, "membership_values");
  size_t next = 0;
  for (Split& split : out->splits) {
    if (split.mode != forest::kMember) continue;
    for (; next < members.size() && !std::isnan(members[next]); ++next)
      split.members.push_back(members[next]);
    ++next;
  }
}

Result<Forest> forest_of(Node node, int64_t features) {
  const NodeLists nodes = NodeLists::of(node);
  const Ints targets = node.attr_ints("leaf_targetids");
  const Numbers weights = tensor_numbers(node, "leaf_weights");
  const int64_t how = node.attr_int("aggregate_function", forest::kSum);
  Forest out{.n_leaves = std::ssize(targets), .n_targets = node.attr_int("n_targets", 1)};
  const size_t n = nodes.size();
  if (!nodes.are_of_one_size() || weights.size() != targets.size())
    return invalid(
        cat("expected lists of ", n, " nodes, and as many leaf_weights as leaf_targetids"));
  if (how < forest::kAverage || how > forest::kMax)
    return invalid(cat("aggregate_function: expected 0..3, got ", how));
  out.how = static_cast<forest::Aggregate>(how);
  for (size_t i = 0; i < n; ++i) {
    if (!nodes.fits(i, features, out.n_leaves))
      return invalid(cat("node ", i, ": expected a mode, a feature and places that exist"));
    out.splits.push_back(nodes.split(i, out.n_leaves));
  }
  read_members(node, &out);
  for (int64_t root : node.attr_ints("tree_roots")) {
    if (!inside(root, static_cast<int64_t>(n)))
      return invalid(cat("tree_roots: expected 0..", static_cast<int64_t>(n) - 1, ", got ", root));
    out.roots.push_back(out.n_leaves + root);
  }
  for (size_t leaf = 0; leaf < targets.size(); ++leaf) {
    if (!inside(targets[leaf], out.n_targets))
      return invalid(
          cat("leaf_targetids: expected 0..", out.n_targets - 1, ", got ", targets[leaf]));
    out.weights.push_back({static_cast<int64_t>(leaf), targets[leaf], weights[leaf]});
  }
  return Result<Forest>(std::move(out));
}

// The leaf of one tree, which has no cycle.
template <class Feature>
int64_t leaf_of(const Forest& trees, int64_t node, const Feature& feature) {
  while (!trees.is_leaf(node)) {
    const Split& split = trees.split(node);
    node = forest::goes_yes(split, feature(split.feature)) ? split.yes : split.no;
  }
  return node;
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

// One row of sums, [targets]; a leaf has one weight.
template <class Feature>
Numbers sums_of(const Forest& trees, const Feature& feature) {
  constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();
  Numbers sums(static_cast<size_t>(trees.n_targets), kUnset);
  for (int64_t root : trees.roots) {
    const auto& [leaf, target, weight] =
        trees.weights[static_cast<size_t>(leaf_of(trees, root, feature))];
    double& sum = sums[static_cast<size_t>(target)];
    sum = std::isnan(sum)             ? weight
          : trees.how == forest::kMin ? std::min(sum, weight)
          : trees.how == forest::kMax ? std::max(sum, weight)
                                      : sum + weight;
  }
  for (double& sum : sums) {
    if (std::isnan(sum)) sum = 0;
    if (trees.how == forest::kAverage) sum /= static_cast<double>(trees.roots.size());
  }
  return sums;
}

Result<int64_t> transform_of(Node node) {
  const int64_t after = node.attr_int("post_transform");
  if (after < kNone || after > kProbit)
    return invalid(cat("post_transform: expected 0..4, got ", after));
  return after;
}

Status tree_ref(const Call& call) {
  Node node = call.node();
  std::span<const int64_t> x = call.shape(0);
  TN_TRY(after, transform_of(node));
  TN_TRY(trees, forest_of(node, x[1]));
  TN_TRY(depth, forest::depth_of(trees));
  TN_TRY(out, call.out(0, call.dtype(0), {x[0], trees.n_targets}));
  auto body = [&, after = after](uint64_t begin, uint64_t end) {
    for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
      Numbers sums = sums_of(trees, [&](int64_t i) {
        return load_number(call.data<char>(0), call.dtype(0), row * x[1] + i);
      });
      transform(sums, after);
      for (int64_t t = 0; t < trees.n_targets; ++t)
        store_number(data_of<char>(out), call.dtype(0), row * trees.n_targets + t,
                     sums[static_cast<size_t>(t)]);
    }
  };
  const int64_t steps = std::max<int64_t>(depth, 1) * std::ssize(trees.roots);
  parallel_for(call.ctx(), static_cast<uint64_t>(x[0]),
               static_cast<uint64_t>(1 + 4096 / std::max<int64_t>(steps, 1)), body);
  return {};
}

Result<std::vector<Value>> tree_decompose(EditView edit, Node node) {
  Builder b(edit);
  Type x = b.ranked(node.input(0), "TreeEnsemble");
  TN_CHECK(b.status());
  if (x.dims[1] < 0) return unsupported("decomposed only where the number of features is known");
  TN_TRY(after, transform_of(node));
  TN_TRY(trees, forest_of(node, x.dims[1]));
  const uint32_t dtype = x.dtype == TN_F64 ? TN_F64 : TN_F32;
  constexpr std::string_view kNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  Value y = forest::sums(b, b.cast(node.input(0), dtype), trees);
  y = b.cast(transformed(b, y, kNames[after]), x.dtype);
  TN_CHECK(b.status());
  return std::vector<Value>{y};
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
            .decompose = decompose<tree_decompose>,
            .cost = cost<move_cost>,
            .ref = ref<tree_ref>,
            .sample = sample<tree_sample>});

}  // namespace

TENON_OPS(tree_ensemble, &kTrees)

}  // namespace tenon::ops
