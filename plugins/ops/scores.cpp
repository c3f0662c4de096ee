// SPDX-License-Identifier: Apache-2.0
#include "scores.hpp"

#include <cmath>
#include <numbers>

namespace tenon::ops {
namespace {

// sqrt(2) erfinv(2 p - 1).
Value probit(Builder& b, Value p) {
  const uint32_t dtype = p.dtype();
  const auto number = [&](double x) { return b.number(x, dtype); };
  constexpr double kA = 0.147;
  Value x = b.sub(b.mul(p, number(2)), number(1));
  Value log = b.op("Log", {b.mul(b.sub(number(1), x), b.add(number(1), x))});
  Value t = b.add(number(2 / (std::numbers::pi * kA)), b.mul(log, number(0.5)));
  Value root = b.op("Sqrt", {b.sub(b.mul(t, t), b.mul(log, number(1 / kA)))});
  Value inverse = b.op("Sqrt", {b.sub(root, t)});
  return b.mul(b.mul(b.op("Sign", {x}), inverse), number(std::numbers::sqrt2));
}

// Softmax over the numbers that are not zero; zeros stay.
Value softmax_zero(Builder& b, Value y) {
  Value zero = b.number(0, y.dtype());
  Value is_zero = b.op("Equal", {y, zero});
  Value highest = b.op("ReduceMax", {y, b.ints({-1})});
  Value powers = b.op("Where", {is_zero, zero, b.op("Exp", {b.sub(y, highest)})});
  Value sum = b.sum(powers, {-1});
  Value divisor = b.op("Where", {b.op("Equal", {sum, zero}), b.number(1, y.dtype()), sum});
  return b.div(powers, divisor);
}

}  // namespace

Value transformed(Builder& b, Value y, std::string_view how) {
  if (how.empty() || how == "NONE") return y;
  if (how == "SOFTMAX") return b.op("Softmax", {y}, {{"axis", -1}});
  if (how == "LOGISTIC") return b.op("Sigmoid", {y});
  if (how == "SOFTMAX_ZERO") return softmax_zero(b, y);
  if (how == "PROBIT") return probit(b, y);
  b.fail(invalid(cat("post_transform: expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, ",
                     "got '", how, "'")));
  return {};
}

Result<std::vector<int64_t>> labels_of(Node node, std::string_view ints, std::string_view texts) {
  if (!texts_of(node.attr(texts)).empty())
    return unsupported(cat(texts,
                           ": labels are integers here, as there are no tensors of texts: "
                           "train with numbered classes (LabelEncoder of scikit-learn)"));
  std::vector<int64_t> labels = node.attr_ints(ints);
  if (labels.empty()) return invalid(cat(ints, ": expected a label for each class, got none"));
  return labels;
}

Value best_label(Builder& b, Value y, const std::vector<int64_t>& labels) {
  Value at = b.op("ArgMax", {y}, {{"axis", -1}, {"keepdims", 0}});
  return b.op("Gather", {b.ints(labels), at}, {{"axis", 0}});
}

Value label_over(Builder& b, Value y, double limit, const std::vector<int64_t>& labels) {
  Value is_over = b.op("Greater", {b.reshape(y, {-1}), b.number(limit, y.dtype())});
  return b.op("Where", {is_over, b.ints({labels[1]}), b.ints({labels[0]})});
}

}  // namespace tenon::ops
