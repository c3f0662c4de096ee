// SPDX-License-Identifier: Apache-2.0
// LinearRegressor and LinearClassifier of ai.onnx.ml: a product with weights that are attributes,
// in float32.
#include "dims.hpp"
#include "sampling.hpp"
#include "scores.hpp"

namespace tenon::ops {
namespace {

constexpr const char* kDomain = "ai.onnx.ml";

// Features are the last of at most two axes; one row has no axis for rows.
Dim rows_of(Node node) {
  Type x = node.input(0).type();
  return !x.ranked ? Dim() : x.rank() == 2 ? dims_of(x)[0] : Dim(1);
}
Status expect_rows(Node node) {
  Type x = node.input(0).type();
  if (!x.ranked || x.rank() == 1 || x.rank() == 2) return {};
  return invalid(cat("x: expected [rows, features] or [features], got ", type_text(x)));
}

// x W^T + b: [rows, targets], W: [targets, features].
Result<Value> scores_of(Builder& b, Node node, int64_t targets) {
  const std::vector<double> weights = floats_of(node.attr("coefficients")),
                            biases = floats_of(node.attr("intercepts"));
  const auto n = static_cast<int64_t>(weights.size());
  if (n == 0 || n % targets != 0)
    return invalid(cat("coefficients: expected a multiple of ", targets, " numbers, got ", n));
  if (!biases.empty() && std::ssize(biases) != targets)
    return invalid(cat("intercepts: expected ", targets, " numbers, got ", biases.size()));
  const int64_t features = n / targets;
  std::vector<float> columns;  // [features, targets]
  for (int64_t i = 0; i < n; ++i)
    columns.push_back(
        static_cast<float>(weights[static_cast<size_t>(i % targets * features + i / targets)]));
  Value x = b.cast(node.input(0), TN_F32);
  Type type = b.ranked(x, node.type());
  TN_CHECK(b.status());
  if (type.dims.back() >= 0 && type.dims.back() != features)
    return invalid(cat("x: expected ", features, " features, got ", type.dims.back()));
  if (type.rank() == 1) x = b.reshape(x, {1, features});
  Value w = b.take(b.edit().constant<float>(TN_F32, {features, targets}, columns));
  Value y = b.op("MatMul", {x, w});
  if (biases.empty()) return y;
  const std::vector<float> row(biases.begin(), biases.end());
  return b.add(y, b.take(b.edit().constant<float>(TN_F32, {targets}, row)));
}

Status regressor_shape(EditView edit, Node node) {
  TN_CHECK(expect_rows(node));
  const int64_t targets = node.attr_int("targets", 1);
  if (targets < 1) return invalid(cat("targets: expected 1 or more, got ", targets));
  return set_output(edit, node, 0, TN_F32, {rows_of(node), targets});
}
Result<std::vector<Value>> regressor_decompose(EditView edit, Node node) {
  Builder b(edit);
  TN_TRY(y, scores_of(b, node, node.attr_int("targets", 1)));
  Value out = transformed(b, y, node.attr_text("post_transform", "NONE"));
  TN_CHECK(b.status());
  return std::vector<Value>{out};
}

struct Classes {
  std::vector<int64_t> labels;
  int64_t n_scores = 0;    // that are computed
  bool is_shared = false;  // one for two labels
};
Result<Classes> classes_of(Node node) {
  TN_TRY(labels, labels_of(node, "classlabels_ints", "classlabels_strings"));
  const std::vector<double> biases = floats_of(node.attr("intercepts"));
  Classes out{labels, biases.empty() ? std::ssize(labels) : std::ssize(biases), false};
  out.is_shared = out.n_scores == 1 && labels.size() == 2;
  if (out.n_scores > 1 && out.n_scores != std::ssize(labels))
    return invalid(cat("classlabels_ints: expected ", out.n_scores, " labels, as there are ",
                       "intercepts, got ", labels.size()));
  // A score without a label for either side: the labels are 1 and 0.
  if (out.n_scores == 1 && !out.is_shared) out.labels = {0, 1};
  return Result<Classes>(std::move(out));
}
Status classifier_shape(EditView edit, Node node) {
  TN_CHECK(expect_rows(node));
  TN_TRY(classes, classes_of(node));
  const Dim rows = rows_of(node);
  TN_CHECK(set_output(edit, node, 0, TN_I64, {rows}));
  return set_output(edit, node, 1, TN_F32, {rows, classes.is_shared ? 2 : classes.n_scores});
}
// Of one score s for two classes ONNX Runtime gives 1 - s and s where nothing becomes of scores;
// else -s and s are what becomes something.
Result<std::vector<Value>> classifier_decompose(EditView edit, Node node) {
  Builder b(edit);
  TN_TRY(classes, classes_of(node));
  TN_TRY(y, scores_of(b, node, classes.n_scores));
  const std::string_view how = node.attr_text("post_transform", "NONE");
  Value label = classes.n_scores == 1 ? label_over(b, y, 0, classes.labels)
                                      : best_label(b, y, classes.labels);
  if (classes.is_shared) {
    Value other = how == "NONE" ? b.sub(b.number(1, TN_F32), y) : b.neg(y);
    y = b.op("Concat", {other, y}, {{"axis", 1}});
  }
  y = transformed(b, y, how);
  TN_CHECK(b.status());
  return std::vector<Value>{label, y};
}

std::vector<double> random_numbers(Sampler& random, int64_t n) {
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i)
    out.push_back(static_cast<double>(random.integer(-8, 8)) / 8);
  return out;
}
Result<Node> regressor_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 3), 3}));
  const int64_t targets = random.integer(1, 2);
  const std::vector<double> w = random_numbers(random, 3 * targets),
                            bias = random_numbers(random, targets);
  return edit.add({.type = "LinearRegressor",
                   .inputs = {x},
                   .attrs = {{"coefficients", any_floats(w)},
                             {"intercepts", any_floats(bias)},
                             {"targets", targets}},
                   .domain = kDomain});
}
Result<Node> classifier_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 3), 3}));
  const int64_t scores = random.coin() ? 1 : 3;
  const std::vector<double> w = random_numbers(random, 3 * scores),
                            bias = random_numbers(random, scores);
  const std::vector<int64_t> two{4, 7}, three{4, 7, 9};
  constexpr std::string_view kAfter[] = {"NONE", "SOFTMAX", "LOGISTIC"};
  return edit.add({.type = "LinearClassifier",
                   .inputs = {x},
                   .attrs = {{"coefficients", any_floats(w)},
                             {"intercepts", any_floats(bias)},
                             {"classlabels_ints", scores == 1 ? two : three},
                             {"post_transform", kAfter[random.integer(0, 2)]}},
                   .n_outputs = 2,
                   .domain = kDomain});
}

constexpr tn_op kRegressor = op_row({.type = "LinearRegressor",
                                     .since = 1,
                                     .domain = kDomain,
                                     .attributes = R"([{"name": "coefficients", "type": "floats"},
                              {"name": "intercepts", "type": "floats"},
                              {"name": "post_transform", "type": "string", "default": "NONE"},
                              {"name": "targets", "type": "int", "default": 1}])",
                                     .shape = shape<regressor_shape, "x: number">,
                                     .decompose = decompose<regressor_decompose>,
                                     .sample = sample<regressor_sample>});
constexpr tn_op kClassifier =
    op_row({.type = "LinearClassifier",
            .since = 1,
            .domain = kDomain,
            .attributes = R"([{"name": "classlabels_ints", "type": "ints"},
                              {"name": "classlabels_strings", "type": "strings"},
                              {"name": "coefficients", "type": "floats"},
                              {"name": "intercepts", "type": "floats"},
                              {"name": "multi_class", "type": "int", "default": 0},
                              {"name": "post_transform", "type": "string", "default": "NONE"}])",
            .shape = shape<classifier_shape, "x: number">,
            .decompose = decompose<classifier_decompose>,
            .sample = sample<classifier_sample>});

}  // namespace

TENON_OPS(linear_models, &kRegressor, &kClassifier)

}  // namespace tenon::ops
