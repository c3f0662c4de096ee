// SPDX-License-Identifier: Apache-2.0
// "trainer.cross_entropy": the mean over samples of -sum(q log softmax(prediction)), where q is 1
// at the sample's class, or the target itself when it is a distribution. Smoothing moves a part e
// of q from the class to
//   all:    all K classes, e/K each, the right one too (PyTorch's label_smoothing)
//   others: the other classes, e/(K - 1) each (He et al. 2019, "Bag of tricks", section 5.2)
// Either way q' = low + (high - low) q.
#include "tenon/sdk/setting.hpp"

#include "objective.hpp"

namespace tenon::trainer {
namespace {

class CrossEntropy {
 public:
  static Result<CrossEntropy> create(tn_ctx*, const Options& options) {
    CrossEntropy out;
    out.smoothing_ = options.number("label_smoothing");
    out.over_others_ = options.text("smoothing_over") == "others";
    out.axis_ = options.integer("axis", 1);
    if (options.has("ignore_index")) out.ignored_ = options.integer("ignore_index");
    for (double weight : floats_of(options.get("weight")))
      out.weights_.push_back(static_cast<float>(weight));
    return out;
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    TN_TRY(of, compared(objective));
    TN_TRY(axis, class_axis(of, axis_));
    int64_t classes = of.predicted.dims[static_cast<size_t>(axis)];
    if (over_others_ && classes < 2)
      return invalid("option smoothing_over: others: expected at least 2 classes");
    Builder b(edit);
    Value logits = logits_of(of.prediction, axis);
    Value log_p = b.op("LogSoftmax", {b.cast(logits, TN_F32)}, {{"axis", axis}});
    if (!weights_.empty() && std::ssize(weights_) != classes)
      return invalid(cat("option weight: expected one number for each of ", classes,
                         " classes, got ", weights_.size()));
    bool soft = is_float(of.wanted.dtype);
    TN_TRY(picked, soft ? by_distribution(b, of, log_p, axis, classes)
                        : by_class(b, of, log_p, axis, classes));
    return mean_loss(b, b.neg(picked), {logits, of.target});
  }

 private:
  // Shares of a wrong class, and of the right one. The smoothing may follow a schedule.
  struct Shares {
    Value low, high;
  };
  Shares shares(Builder& b, int64_t classes) const {
    Value one = b.number(1, TN_F32);
    Value e = setting(b, "label_smoothing", smoothing_);
    Value low = b.div(e, b.number(static_cast<double>(classes - over_others_), TN_F32));
    Value left = b.sub(one, e);
    return {low, over_others_ ? left : b.add(left, low)};
  }

  Result<Value> by_distribution(
      Builder& b, const Compared& of, Value log_p, int64_t axis, int64_t classes) const {
    if (ignored_) return invalid("option ignore_index: the target holds no classes but floats");
    if (!fits(of.predicted, of.wanted))
      return invalid(cat("target ", of.target.name(), ": expected a share of each class, as ",
                         type_text(of.predicted), ", or classes as integers, got ",
                         type_text(of.wanted)));
    Value q = b.cast(of.target, TN_F32);
    if (smoothing_ > 0) {
      auto [low, high] = shares(b, classes);
      q = b.add(b.mul(q, b.sub(high, low)), low);
    }
    return b.sum(b.mul(weighted(b, q, axis), log_p), {axis}, false);
  }

  // Each class times its weight.
  Value weighted(Builder& b, Value q, int64_t axis) const {
    if (weights_.empty()) return q;
    std::vector<int64_t> shape(q.type().rank(), 1);
    shape[static_cast<size_t>(axis)] = std::ssize(weights_);
    return b.mul(q, b.take(b.edit().constant<float>(TN_F32, shape, weights_)));
  }

  // q log p of each class. One without a share adds nothing, also where it cannot be (a logit of
  // -infinity).
  Value parts(Builder& b, Value is_it, Value log_p, int64_t classes) const {
    if (smoothing_ == 0) return b.op("Where", {is_it, log_p, b.number(0, TN_F32)});
    auto [low, high] = shares(b, classes);
    return b.mul(b.op("Where", {is_it, high, low}), log_p);
  }

  // Scores of a sequence, [n, steps, classes], have their classes last.
  static std::string axis_hint(const Compared& of, int64_t axis) {
    Type labels = of.predicted;
    const auto last = std::ssize(labels.dims) - 1;
    labels.dims.pop_back();
    if (axis == last || !fits(labels, of.wanted)) return "";
    return "; with option axis = -1 the classes are on the last axis";
  }

  Result<Value> by_class(
      Builder& b, const Compared& of, Value log_p, int64_t axis, int64_t classes) const {
    Type labels = of.predicted;
    labels.dims.erase(labels.dims.begin() + axis);
    if (!labels.symbols.empty()) labels.symbols.erase(labels.symbols.begin() + axis);
    labels.dtype = TN_I64;
    if (!fits(labels, of.wanted) || of.wanted.dtype == TN_BOOL)
      return invalid(cat("target ", of.target.name(), ": expected ", type_text(labels),
                         " for prediction ", type_text(of.predicted), ", got ",
                         type_text(of.wanted), axis_hint(of, axis)));
    TN_CHECK(b.edit().set_note(of.target.id, kClassesNote, any_int(classes)));
    std::vector<int64_t> numbers(static_cast<size_t>(classes)), shape(of.predicted.rank(), 1);
    for (int64_t i = 0; i < classes; ++i)
      numbers[static_cast<size_t>(i)] = i;
    shape[static_cast<size_t>(axis)] = classes;
    Value all = b.reshape(b.ints(numbers), shape);
    Value label = b.cast(of.target, TN_I64);
    Value is_it = b.op("Equal", {b.op("Unsqueeze", {label, b.ints({axis})}), all});
    Value picked = b.sum(weighted(b, parts(b, is_it, log_p, classes), axis), {axis}, false);
    Value counts = b.number(1, TN_F32);  // what each label does
    if (!weights_.empty()) {
      Value its = b.op("Where", {is_it, b.number(1, TN_F32), b.number(0, TN_F32)});
      counts = b.sum(weighted(b, its, axis), {axis}, false);
    }
    if (ignored_) {
      TN_CHECK(b.edit().set_note(of.target.id, kIgnoredNote, any_int(*ignored_)));
      Value zero = b.number(0, TN_F32);
      Value out = b.op("Equal", {label, b.number(static_cast<double>(*ignored_), TN_I64)});
      counts = b.op("Where", {out, zero, counts});
      picked = b.op("Where", {out, zero, picked});
    }
    if (!ignored_ && weights_.empty()) return picked;
    // The mean of those that count: the caller divides by all, so this multiplies by all / counted.
    return divided_by_share(b, picked, b.op("ReduceMean", {counts}, {{"keepdims", 0}}));
  }

  std::vector<float> weights_;  // of classes; empty: all alike
  double smoothing_ = 0;
  bool over_others_ = false;
  int64_t axis_ = 1;
  std::optional<int64_t> ignored_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(cross_entropy,
           tenon::trainer::CrossEntropy,
           "trainer.cross_entropy",
           "cross entropy of classes, or of shares of classes",
           R"({
  "properties": {
    "label_smoothing": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0, "description": "label smoothing: the probability that is taken from the true class"},
    "smoothing_over": {"type": "string", "enum": ["all", "others"], "default": "all", "description": "where it goes: all classes, as in PyTorch, or all but the true one, as in the paper"},
    "axis": {"type": "integer", "default": 1, "description": "axis of the classes in the prediction"},
    "weight": {"type": "array", "items": {"type": "number", "minimum": 0}, "description": "weights of the classes, as PyTorch's weight: a sample counts as much as its class; shares of classes are weighed, and divided by all samples"},
    "ignore_index": {"type": "integer", "description": "ignore index: samples with this label do not count"}}})")
