// SPDX-License-Identifier: Apache-2.0
// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: x [n, c, s..] and labels [n, s..] give one
// loss per label, or their sum or weighted mean.
#include <algorithm>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

enum class Reduction { kNone, kSum, kMean };
Result<Reduction> reduction_of(Node node) {
  std::string_view text = node.attr_text("reduction", "mean");
  if (text == "none") return Reduction::kNone;
  if (text == "sum") return Reduction::kSum;
  if (text == "mean") return Reduction::kMean;
  return invalid(cat("reduction: expected one of none, sum, mean, got '", text, "'"));
}

std::optional<int64_t> ignored_label(Node node) {
  tn_any any = node.attr("ignore_index");
  return any.tag == TN_ANY_I64 ? std::optional<int64_t>(any.v.i) : std::nullopt;
}

Status loss_shape(EditView edit, Node node) {
  Type x = node.input(0).type(), labels = node.input(1).type();
  TN_TRY(reduction, reduction_of(node));
  TN_CHECK(set_output(edit, node, 1, x));
  if (reduction != Reduction::kNone) return set_output(edit, node, 0, x.dtype, {});
  labels.dtype = x.dtype;
  return set_output(edit, node, 0, labels);
}

struct Losses {
  int64_t classes, inner, count;  // labels: count = n * inner
  std::vector<int64_t> labels;
  std::vector<bool> ignored;
  Reduction reduction;
};

Result<Losses> losses_of(const Call& call) {
  std::span<const int64_t> x = call.shape(0), labels = call.shape(1);
  if (x.size() < 2 || labels.size() + 1 != x.size() || labels[0] != x[0] ||
      !std::equal(labels.begin() + 1, labels.end(), x.begin() + 2))
    return invalid("expected scores [n, c, s..] and labels [n, s..]");
  if (call.has(2) && element_count(call.in(2)) != x[1])
    return invalid(cat("weights: expected ", x[1], " numbers, got ", element_count(call.in(2))));
  TN_TRY(reduction, reduction_of(call.node()));
  Losses out{
      x[1],     element_count(x.subspan(2)), element_count(labels), read_ints(call.in(1)), {},
      reduction};
  std::optional<int64_t> ignored = ignored_label(call.node());
  for (int64_t label : out.labels) {
    out.ignored.push_back(label == ignored);
    if (!out.ignored.back() && (label < 0 || label >= out.classes))
      return Status(TN_OUT_OF_RANGE, cat("labels: expected 0..", out.classes - 1, ", got ", label));
  }
  return out;
}

// Where the score of class `c` for label i is.
int64_t score_at(const Losses& l, int64_t i, int64_t c) {
  return (i / l.inner * l.classes + c) * l.inner + i % l.inner;
}

// log_prob: of each score, by its place.
template <class T, class LogProb>
Status reduce_losses(const Call& call, const Losses& l, const LogProb& log_prob) {
  bool each = l.reduction == Reduction::kNone;
  TN_TRY(out, call.out(0, call.dtype(0), each ? call.shape(1) : std::span<const int64_t>()));
  double sum = 0, weights = 0;
  for (int64_t i = 0; i < l.count; ++i) {
    auto at = static_cast<size_t>(i);
    double loss = 0;
    if (!l.ignored[at]) {
      double weight = call.has(2) ? static_cast<double>(call.data<T>(2)[l.labels[at]]) : 1;
      loss = -weight * log_prob(score_at(l, i, l.labels[at]));
      weights += weight;
    }
    sum += loss;
    if (each) data_of<T>(out)[i] = static_cast<T>(loss);
  }
  if (!each)
    *data_of<T>(out) = static_cast<T>(l.reduction == Reduction::kMean ? sum / weights : sum);
  return {};
}

Status nll_ref(const Call& call) {
  TN_TRY(losses, losses_of(call));
  return dispatch<kFloats>(call.dtype(0), [&, &l = losses]<class T>() -> Status {
    const T* x = call.data<T>(0);
    return reduce_losses<T>(call, l, [x](int64_t i) { return static_cast<double>(x[i]); });
  });
}

Status cross_entropy_ref(const Call& call) {
  TN_TRY(losses, losses_of(call));
  return dispatch<kFloats>(call.dtype(0), [&, &l = losses]<class T>() -> Status {
    const T* x = call.data<T>(0);
    std::vector<double> log_prob(static_cast<size_t>(element_count(call.in(0))));
    parallel_for(call.ctx(), static_cast<uint64_t>(l.count), 64, [&](uint64_t begin, uint64_t end) {
      for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
        double highest = -HUGE_VAL, sum = 0;
        for (int64_t c = 0; c < l.classes; ++c)
          highest = std::max(highest, static_cast<double>(x[score_at(l, i, c)]));
        for (int64_t c = 0; c < l.classes; ++c)
          sum += std::exp(static_cast<double>(x[score_at(l, i, c)]) - highest);
        for (int64_t c = 0; c < l.classes; ++c) {
          int64_t at = score_at(l, i, c);
          log_prob[static_cast<size_t>(at)] = static_cast<double>(x[at]) - highest - std::log(sum);
        }
      }
    });
    if (call.node().output(1)) {
      TN_TRY(second, call.out(1, call.dtype(0), call.shape(0)));
      for (size_t i = 0; i < log_prob.size(); ++i)
        data_of<T>(second)[i] = static_cast<T>(log_prob[i]);
    }
    return reduce_losses<T>(call, l, [&](int64_t i) { return log_prob[static_cast<size_t>(i)]; });
  });
}

// Each label's weight as a tensor; labels that are left out weigh 0, and stand as 0 in `labels`.
Result<Value> weights_of(EditView edit, Node node, Value& labels) {
  TN_TRY(one, edit.constant<float>(TN_F32, {}, std::vector<float>{1}));
  TN_TRY(like, edit.op("CastLike", {one, node.input(0)}));
  std::optional<int64_t> ignored = ignored_label(node);
  Value mask;
  if (ignored) {
    TN_TRY(number, edit.constant<int64_t>(TN_I64, {}, std::vector{*ignored}));
    TN_TRY(of_type, edit.op("CastLike", {number, labels}));
    TN_TRY(equal, edit.op("Equal", {labels, of_type}));
    TN_TRY(zero, edit.op("Sub", {of_type, of_type}));
    TN_TRY(safe, edit.op("Where", {equal, zero, labels}));
    mask = equal;
    labels = safe;
  }
  Value weights;
  if (node.input(2)) {
    TN_TRY(gathered, edit.op("Gather", {node.input(2), labels}, {{"axis", 0}}));
    weights = gathered;
  } else {
    TN_TRY(shape, edit.op("Shape", {labels}));
    TN_TRY(ones, edit.op("Expand", {like, shape}));
    weights = ones;
  }
  if (!ignored) return weights;
  TN_TRY(nothing, edit.op("Sub", {like, like}));
  return edit.op("Where", {mask, nothing, weights});
}

Result<std::vector<Value>> loss_decompose(EditView edit, Node node) {
  TN_TRY(reduction, reduction_of(node));
  Value log_prob = node.input(0), labels = node.input(1);
  std::vector<Value> out(node.n_outputs());
  if (node.is("SoftmaxCrossEntropyLoss")) {
    TN_TRY(logs, edit.op("LogSoftmax", {log_prob}, {{"axis", 1}}));
    log_prob = logs;
    if (out.size() > 1) out[1] = logs;
  }
  TN_TRY(weights, weights_of(edit, node, labels));
  TN_TRY(axis, edit.ints({1}));
  TN_TRY(indices, edit.op("Unsqueeze", {labels, axis}));
  TN_TRY(picked, edit.op("GatherElements", {log_prob, indices}, {{"axis", 1}}));
  TN_TRY(flat, edit.op("Squeeze", {picked, axis}));
  TN_TRY(weighted, edit.op("Mul", {flat, weights}));
  TN_TRY(loss, edit.op("Neg", {weighted}));
  out[0] = loss;
  if (reduction == Reduction::kNone) return out;
  TN_TRY(sum, edit.op("ReduceSum", {loss}, {{"keepdims", 0}}));
  out[0] = sum;
  if (reduction == Reduction::kSum) return out;
  TN_TRY(weight, edit.op("ReduceSum", {weights}, {{"keepdims", 0}}));
  TN_TRY(mean, edit.op("Div", {sum, weight}));
  out[0] = mean;
  return out;
}

Result<Node> loss_sample(EditView edit, uint64_t seed, bool with_softmax) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims{random.integer(1, 4)};
  int64_t classes = random.integer(2, 5);
  for (int64_t more = random.integer(0, 2); more > 0; --more)
    dims.push_back(random.integer(1, 3));
  std::vector<int64_t> labels(static_cast<size_t>(element_count(dims)));
  for (int64_t& label : labels)
    label = random.integer(0, classes - 1);
  labels[0] = 0;
  TN_TRY(at, edit.constant<int64_t>(TN_I64, dims, labels));
  dims.insert(dims.begin() + 1, classes);
  TN_TRY(x, random.input(TN_F32, dims));
  std::vector<Value> inputs{x, at};
  if (random.coin()) {  // weights that cannot sum to nothing
    std::vector<float> weights(static_cast<size_t>(classes), 0.5f);
    weights[0] = 2;
    TN_TRY(weight, edit.constant<float>(TN_F32, {classes}, weights));
    inputs.push_back(weight);
  }
  constexpr const char* kReductions[] = {"none", "sum", "mean"};
  std::vector<Attr> attrs{{"reduction", kReductions[random.integer(0, 2)]}};
  if (random.coin()) attrs.emplace_back("ignore_index", 1);
  return edit.add({.type = with_softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss",
                   .inputs = inputs,
                   .attrs = attrs,
                   .n_outputs = uint64_t(with_softmax && random.coin() ? 2 : 1)});
}
Result<Node> nll_sample(EditView edit, uint64_t seed) {
  return loss_sample(edit, seed, false);
}
Result<Node> cross_entropy_sample(EditView edit, uint64_t seed) {
  return loss_sample(edit, seed, true);
}

OpCost loss_cost(Node node) {
  Type x = node.input(0).type();
  return {x.is_static() ? 5 * static_cast<double>(x.elements()) : 0, node_bytes(node)};
}

constexpr const char* kAttributes = R"([{"name": "ignore_index", "type": "int"},
    {"name": "reduction", "type": "string", "default": "mean"}])";
constexpr tn_op kNll = op_row(
    {.type = "NegativeLogLikelihoodLoss",
     .since = 22,
     .attributes = kAttributes,
     .shape = shape<loss_shape, "x: T[n c s..], target: int[n s..], weight: T[c]? ; T = float">,
     .decompose = decompose<loss_decompose>,
     .cost = cost<loss_cost>,
     .ref = ref<nll_ref>,
     .sample = sample<nll_sample>,
     .cast = "cpu=fp32 cuda=fp32"});
constexpr tn_op kCrossEntropy = op_row(
    {.type = "SoftmaxCrossEntropyLoss",
     .since = 13,
     .attributes = kAttributes,
     .shape = shape<loss_shape, "x: T[n c s..], target: int[n s..], weight: T[c]? ; T = float">,
     .decompose = decompose<loss_decompose>,
     .cost = cost<loss_cost>,
     .ref = ref<cross_entropy_ref>,
     .sample = sample<cross_entropy_sample>,
     .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(loss, &kNll, &kCrossEntropy)

}  // namespace tenon::ops
