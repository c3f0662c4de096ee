// SPDX-License-Identifier: Apache-2.0
// TreeEnsembleClassifier and TreeEnsembleRegressor of ai.onnx.ml, as exporters of scikit-learn,
// XGBoost and LightGBM write them: nodes by the numbers of tree and node.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "dims.hpp"
#include "forest.hpp"
#include "sampling.hpp"
#include "scores.hpp"

namespace tenon::ops {
namespace {

using forest::Forest;
using forest::Ints;
using forest::Numbers;

constexpr const char* kDomain = "ai.onnx.ml";

// Stated as a list of floats or, for double precision, as a tensor.
Numbers numbers_of(Node node, const std::string& name) {
  Numbers stated = floats_of(node.attr(name));
  return stated.empty() ? forest::tensor_numbers(node, name + "_as_tensor") : stated;
}

Result<forest::Mode> mode_of(const std::string& text) {
  constexpr std::string_view kNames[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                         "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  const auto* found = std::ranges::find(kNames, text);
  if (found == std::end(kNames))
    return invalid(cat("nodes_modes: expected LEAF, BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, ",
                       "BRANCH_EQ or BRANCH_NEQ, got '", text, "'"));
  return static_cast<forest::Mode>(found - kNames);
}

// The attributes' lists, with an entry for every node; `what` is class or target.
class Reader {
 public:
  Reader(Node node, std::string what, int64_t n_targets)
      : node_(node), what_(std::move(what)), modes_(texts_of(node.attr("nodes_modes"))) {
    out_.n_targets = n_targets;
  }

  // features: of a row, or negative where that is not known.
  Result<Forest> read(int64_t features) {
    TN_CHECK(place_nodes());
    TN_CHECK(read_splits(features));
    TN_CHECK(read_weights());
    return Result<Forest>(std::move(out_));
  }

 private:
  using Key = std::pair<int64_t, int64_t>;  // tree, node

  // Each node as forest.hpp counts them. A tree's first node is its root.
  Status place_nodes() {
    trees_ = node_.attr_ints("nodes_treeids");
    ids_ = node_.attr_ints("nodes_nodeids");
    if (trees_.size() != modes_.size() || ids_.size() != modes_.size() || modes_.empty())
      return invalid(
          cat("nodes_treeids, nodes_nodeids and nodes_modes: expected an entry for each ",
              "node, got ", trees_.size(), ", ", ids_.size(), " and ", modes_.size()));
    out_.n_leaves = std::ranges::count(modes_, "LEAF");
    int64_t leaf = 0, split = out_.n_leaves;
    std::set<int64_t> seen;
    for (size_t i = 0; i < modes_.size(); ++i) {
      const int64_t place = modes_[i] == "LEAF" ? leaf++ : split++;
      if (!places_.try_emplace(Key{trees_[i], ids_[i]}, place).second)
        return invalid(
            cat("nodes_nodeids: node ", ids_[i], " of tree ", trees_[i], " is there twice"));
      if (seen.insert(trees_[i]).second) out_.roots.push_back(place);
    }
    return {};
  }

  Status read_splits(int64_t features) {
    const Ints feature = node_.attr_ints("nodes_featureids"),
               yes = node_.attr_ints("nodes_truenodeids"),
               no = node_.attr_ints("nodes_falsenodeids"),
               missing = node_.attr_ints("nodes_missing_value_tracks_true");
    const Numbers limits = numbers_of(node_, "nodes_values");
    const size_t n = modes_.size();
    for (size_t given : {feature.size(), yes.size(), no.size(), limits.size()})
      if (given != n) return invalid(cat("nodes: expected lists of ", n, ", got one of ", given));
    if (!missing.empty() && missing.size() != n)
      return invalid(cat("nodes_missing_value_tracks_true: expected ", n, " entries or none, got ",
                         missing.size()));
    for (size_t i = 0; i < n; ++i) {
      if (modes_[i] == "LEAF") continue;
      TN_TRY(mode, mode_of(modes_[i]));
      const bool is_missing = !missing.empty() && missing[i] != 0;
      if (feature[i] < 0 || (features >= 0 && feature[i] >= features))
        return invalid(cat("nodes_featureids: expected 0..", features - 1, ", got ", feature[i]));
      TN_TRY(to, place_of({trees_[i], yes[i]}, "nodes_truenodeids"));
      TN_TRY(other, place_of({trees_[i], no[i]}, "nodes_falsenodeids"));
      out_.splits.push_back({mode, feature[i], to, other, is_missing, limits[i], {}});
    }
    return {};
  }

  Status read_weights() {
    const Ints trees = node_.attr_ints(what_ + "_treeids"),
               ids = node_.attr_ints(what_ + "_nodeids"), targets = node_.attr_ints(what_ + "_ids");
    const Numbers weights = numbers_of(node_, what_ + "_weights");
    if (trees.size() != ids.size() || trees.size() != targets.size() ||
        trees.size() != weights.size())
      return invalid(cat(what_, ": expected lists of one size, got ", trees.size(), ", ",
                         ids.size(), ", ", targets.size(), " and ", weights.size()));
    for (size_t i = 0; i < weights.size(); ++i) {
      TN_TRY(leaf, place_of({trees[i], ids[i]}, what_ + "_nodeids"));
      if (!out_.is_leaf(leaf))
        return invalid(cat(what_, "_nodeids: node ", ids[i], " of tree ", trees[i],
                           ": expected a leaf, got a branch"));
      if (targets[i] < 0 || targets[i] >= out_.n_targets)
        return invalid(cat(what_, "_ids: expected 0..", out_.n_targets - 1, ", got ", targets[i]));
      out_.weights.push_back({leaf, targets[i], weights[i]});
    }
    return {};
  }

  Result<int64_t> place_of(Key key, std::string_view list) const {
    auto found = places_.find(key);
    if (found != places_.end()) return found->second;
    return invalid(cat(list, ": tree ", key.first, " has no node ", key.second));
  }

  Node node_;
  std::string what_;
  std::vector<std::string> modes_;
  Ints trees_, ids_;
  std::map<Key, int64_t> places_;
  Forest out_;
};

// Rows of numbers as the walk compares them.
Value rows_of(Builder& b, Node node) {
  const Value x = node.input(0);
  return b.cast(x, x.dtype() == TN_F64 ? TN_F64 : TN_F32);
}
// The sums and what stands beside them: one number for each target, or one for all.
Result<Value> sums_of(Builder& b, Node node, const Forest& trees) {
  Value x = rows_of(b, node);
  Value y = forest::sums(b, x, trees);
  const Numbers base = numbers_of(node, "base_values");
  if (base.empty()) return y;
  const auto n = static_cast<size_t>(trees.n_targets);
  if (base.size() != 1 && base.size() != n)
    return invalid(cat("base_values: expected 1 or ", n, " numbers, got ", base.size()));
  const std::vector<int64_t> dims{std::ssize(base)};
  const std::vector<float> narrow(base.begin(), base.end());
  Value wide = x.dtype() == TN_F64 ? b.take(b.edit().constant<double>(TN_F64, dims, base))
                                   : b.take(b.edit().constant<float>(TN_F32, dims, narrow));
  return b.add(y, wide);
}
int64_t features_of(Node node) {
  Type x = node.input(0).type();
  return x.ranked ? x.dims[1] : -1;
}
Dim rows_dim(Node node) {
  Type x = node.input(0).type();
  return x.ranked ? dims_of(x)[0] : Dim();
}

// ---- regression

Status regressor_shape(EditView edit, Node node) {
  const int64_t n = node.attr_int("n_targets", 1);
  if (n < 1) return invalid(cat("n_targets: expected 1 or more, got ", n));
  return set_output(edit, node, 0, TN_F32, {rows_dim(node), n});
}
Result<std::vector<Value>> regressor_decompose(EditView edit, Node node) {
  Builder b(edit);
  TN_TRY(trees, Reader(node, "target", node.attr_int("n_targets", 1)).read(features_of(node)));
  constexpr std::string_view kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const std::string_view how = node.attr_text("aggregate_function", "SUM");
  const auto* found = std::ranges::find(kNames, how);
  if (found == std::end(kNames))
    return invalid(cat("aggregate_function: expected AVERAGE, SUM, MIN or MAX, got '", how, "'"));
  trees.how = static_cast<forest::Aggregate>(found - kNames);
  TN_TRY(y, sums_of(b, node, trees));
  Value out = b.cast(transformed(b, y, node.attr_text("post_transform", "NONE")), TN_F32);
  TN_CHECK(b.status());
  return std::vector<Value>{out};
}

// ---- classification

Result<Ints> labels_of(Node node) {
  TN_TRY(labels, ops::labels_of(node, "classlabels_int64s", "classlabels_strings"));
  if (labels.size() < 2)
    return unsupported(cat("classlabels_int64s: expected two labels or more, got ", labels.size()));
  return labels;
}
Status classifier_shape(EditView edit, Node node) {
  TN_TRY(labels, labels_of(node));
  const Dim rows = rows_dim(node);
  TN_CHECK(set_output(edit, node, 0, TN_I64, {rows}));
  return set_output(edit, node, 1, TN_F32, {rows, std::ssize(labels)});
}
// Two classes with weights of one alone: s is its score. Where all weights are probabilities, the
// other class has 1 - s; else s is above or below 0, as of boosted trees, and the other has -s.
// That is what ONNX Runtime gives; ONNX does not say it.
std::vector<Value> of_one_score(
    Builder& b, Value s, const Forest& trees, std::string_view how, const Ints& labels) {
  const bool are_shares = how == "NONE" && std::ranges::all_of(trees.weights, [](const auto& w) {
                            return w.number >= 0;
                          });
  Value other = are_shares ? b.sub(b.number(1, s.dtype()), s) : b.neg(s);
  Value scores = b.op("Concat", {other, s}, {{"axis", 1}});
  return {label_over(b, s, are_shares ? 0.5 : 0, labels), transformed(b, scores, how)};
}
Result<std::vector<Value>> classifier_decompose(EditView edit, Node node) {
  Builder b(edit);
  TN_TRY(labels, labels_of(node));
  TN_TRY(trees, Reader(node, "class", std::ssize(labels)).read(features_of(node)));
  const std::string_view how = node.attr_text("post_transform", "NONE");
  const Ints ids = node.attr_ints("class_ids");
  const bool is_one = labels.size() == 2 && std::set<int64_t>(ids.begin(), ids.end()).size() == 1;
  TN_TRY(y, sums_of(b, node, trees));
  std::vector<Value> out;
  if (is_one) {
    Value s = b.op("Slice", {y, b.ints({ids[0]}), b.ints({ids[0] + 1}), b.ints({1})});
    out = of_one_score(b, s, trees, how, labels);
  } else {
    out = {best_label(b, y, labels), transformed(b, y, how)};
  }
  out[1] = b.cast(out[1], TN_F32);
  TN_CHECK(b.status());
  return out;
}

// Two trees of a split and of two, whose features and limits fit rows of two numbers.
struct SampleLists {
  Ints trees{0, 0, 0, 1, 1, 1, 1, 1}, ids{0, 1, 2, 0, 1, 2, 3, 4}, features{0, 0, 0, 1, 0, 0, 0, 0},
      yes{1, 0, 0, 1, 3, 0, 0, 0}, no{2, 0, 0, 2, 4, 0, 0, 0}, missing{0, 0, 0, 1, 0, 0, 0, 0};
  std::vector<double> limits{0.25, 0, 0, -0.5, 0.5, 0, 0, 0}, weights{0.5, -1, 2, 0.125, -0.75};
  Ints of_trees{0, 0, 1, 1, 1}, of_ids{1, 2, 2, 3, 4};
  std::vector<tn_str> modes;

  explicit SampleLists(std::string_view mode) {
    for (bool is_leaf : {false, true, true, false, false, true, true, true})
      modes.push_back(str(is_leaf ? "LEAF" : mode));
  }
  std::vector<Attr> attrs() const {
    return {{"nodes_treeids", trees},          {"nodes_nodeids", ids},
            {"nodes_featureids", features},    {"nodes_values", any_floats(limits)},
            {"nodes_truenodeids", yes},        {"nodes_falsenodeids", no},
            {"nodes_modes", any_texts(modes)}, {"nodes_missing_value_tracks_true", missing}};
  }
};
constexpr std::string_view kSampleModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"};

Result<Node> regressor_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 5), 2}));
  const SampleLists lists(kSampleModes[random.integer(0, 3)]);
  constexpr std::string_view kHow[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const Ints targets{0, 1, 1, 0, 1};
  std::vector<Attr> attrs = lists.attrs();
  attrs.insert(attrs.end(), {{"target_treeids", lists.of_trees},
                             {"target_nodeids", lists.of_ids},
                             {"target_ids", targets},
                             {"target_weights", any_floats(lists.weights)},
                             {"n_targets", 2},
                             {"aggregate_function", kHow[random.integer(0, 3)]}});
  return edit.add(
      {.type = "TreeEnsembleRegressor", .inputs = {x}, .attrs = attrs, .domain = kDomain});
}
Result<Node> classifier_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 5), 2}));
  const SampleLists lists(kSampleModes[random.integer(0, 3)]);
  constexpr std::string_view kAfter[] = {"NONE", "SOFTMAX", "LOGISTIC"};
  const Ints of_one{0, 0, 0, 0, 0}, of_three{0, 1, 2, 0, 1}, two{4, 7}, three{4, 7, 9};
  const bool is_one = random.coin();
  std::vector<Attr> attrs = lists.attrs();
  attrs.insert(attrs.end(), {{"class_treeids", lists.of_trees},
                             {"class_nodeids", lists.of_ids},
                             {"class_ids", is_one ? of_one : of_three},
                             {"class_weights", any_floats(lists.weights)},
                             {"classlabels_int64s", is_one ? two : three},
                             {"post_transform", kAfter[random.integer(0, 2)]}});
  return edit.add({.type = "TreeEnsembleClassifier",
                   .inputs = {x},
                   .attrs = attrs,
                   .n_outputs = 2,
                   .domain = kDomain});
}

#define TENON_TREE_ATTRIBUTES                                       \
  R"({"name": "base_values", "type": "floats"},)"                   \
  R"({"name": "base_values_as_tensor", "type": "tensor"},)"         \
  R"({"name": "nodes_falsenodeids", "type": "ints"},)"              \
  R"({"name": "nodes_featureids", "type": "ints"},)"                \
  R"({"name": "nodes_hitrates", "type": "floats"},)"                \
  R"({"name": "nodes_hitrates_as_tensor", "type": "tensor"},)"      \
  R"({"name": "nodes_missing_value_tracks_true", "type": "ints"},)" \
  R"({"name": "nodes_modes", "type": "strings"},)"                  \
  R"({"name": "nodes_nodeids", "type": "ints"},)"                   \
  R"({"name": "nodes_treeids", "type": "ints"},)"                   \
  R"({"name": "nodes_truenodeids", "type": "ints"},)"               \
  R"({"name": "nodes_values", "type": "floats"},)"                  \
  R"({"name": "nodes_values_as_tensor", "type": "tensor"},)"        \
  R"({"name": "post_transform", "type": "string", "default": "NONE"},)"

constexpr tn_op kRegressor =
    op_row({.type = "TreeEnsembleRegressor",
            .since = 1,
            .domain = kDomain,
            .attributes = "[" TENON_TREE_ATTRIBUTES
                          R"({"name": "aggregate_function", "type": "string", "default": "SUM"},
                      {"name": "n_targets", "type": "int"},
                      {"name": "target_ids", "type": "ints"},
                      {"name": "target_nodeids", "type": "ints"},
                      {"name": "target_treeids", "type": "ints"},
                      {"name": "target_weights", "type": "floats"},
                      {"name": "target_weights_as_tensor", "type": "tensor"}])",
            .shape = shape<regressor_shape, "x: number[n f]">,
            .decompose = decompose<regressor_decompose>,
            .sample = sample<regressor_sample>});
constexpr tn_op kClassifier = op_row({.type = "TreeEnsembleClassifier",
                                      .since = 1,
                                      .domain = kDomain,
                                      .attributes = "[" TENON_TREE_ATTRIBUTES
                                                    R"({"name": "class_ids", "type": "ints"},
                             {"name": "class_nodeids", "type": "ints"},
                             {"name": "class_treeids", "type": "ints"},
                             {"name": "class_weights", "type": "floats"},
                             {"name": "class_weights_as_tensor", "type": "tensor"},
                             {"name": "classlabels_int64s", "type": "ints"},
                             {"name": "classlabels_strings", "type": "strings"}])",
                                      .shape = shape<classifier_shape, "x: number[n f]">,
                                      .decompose = decompose<classifier_decompose>,
                                      .sample = sample<classifier_sample>});

}  // namespace

TENON_OPS(tree_models, &kRegressor, &kClassifier)

}  // namespace tenon::ops
