// SPDX-License-Identifier: Apache-2.0
// "trainer.kl": the Kullback-Leibler divergence of the target's distribution from the prediction's,
//   mean over samples of sum_k t_k (log t_k - log softmax(prediction)_k),
// where a class with t = 0 adds nothing.
#include "objective.hpp"

namespace tenon::trainer {
namespace {

class Kl {
 public:
  static Result<Kl> create(tn_ctx*, const Options& options) {
    Kl out;
    out.target_ = options.text("target");
    out.axis_ = options.integer("axis", 1);
    return out;
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    TN_TRY(of, compared(objective));
    TN_TRY(axis, class_axis(of, axis_));
    if (!is_float(of.wanted.dtype) || !fits(of.predicted, of.wanted))
      return invalid(cat("target ", of.target.name(), ": expected floats of the shape of ",
                         of.prediction.name(), ", ", type_text(of.predicted), ", got ",
                         type_text(of.wanted)));
    Builder b(edit);
    Value logits = logits_of(of.prediction, axis);
    Value log_p = b.op("LogSoftmax", {b.cast(logits, TN_F32)}, {{"axis", axis}});
    auto [t, log_t] = distribution(b, b.cast(of.target, TN_F32), axis);
    Value zero = b.number(0, TN_F32);  // 0 log 0, also where the logarithm is -infinity
    Value parts = b.op("Where", {b.op("Greater", {t, zero}), b.mul(t, b.sub(log_t, log_p)), zero});
    return mean_loss(b, b.sum(parts, {axis}, false), {logits, of.target});
  }

 private:
  // The target's shares and their logarithms.
  std::pair<Value, Value> distribution(Builder& b, Value given, int64_t axis) const {
    if (target_ == "probabilities") return {given, b.op("Log", {given})};
    Value log_t = target_ == "logits" ? b.op("LogSoftmax", {given}, {{"axis", axis}}) : given;
    return {b.op("Exp", {log_t}), log_t};
  }

  std::string target_;
  int64_t axis_ = 1;
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(kl,
           tenon::trainer::Kl,
           "trainer.kl",
           "Kullback-Leibler divergence from shares of classes",
           R"({
  "properties": {
    "target": {"type": "string", "enum": ["probabilities", "log_probabilities", "logits"], "default": "probabilities", "description": "what the target holds"},
    "axis": {"type": "integer", "default": 1, "description": "axis of the classes in the prediction"}}})")
