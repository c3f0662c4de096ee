// SPDX-License-Identifier: Apache-2.0
// "trainer.bce_with_logits": the mean over all numbers of the cross entropy of yes and no, where
// the prediction is a logit z and the target t is 1, 0, or a share between:
//   -(weight*t*log s(z) + (1 - t)*log(1 - s(z))), s(z) = 1/(1 + exp(-z))
#include "binary.hpp"

namespace tenon::trainer {
namespace {

class BceWithLogits {
 public:
  static Result<BceWithLogits> create(tn_ctx*, const Options& options) {
    BceWithLogits out;
    for (double weight : floats_of(options.get("positive_weight")))
      out.more_.push_back(static_cast<float>(weight - 1));
    return out;
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    Builder b(edit);
    TN_TRY(of, paired(b, objective));
    TN_CHECK(expect_logits(of.ends[0]));
    TN_TRY(more, weights_less_one(b, of.ends[0].type()));
    return mean_loss(b, binary_cross_entropy(b, of.prediction, of.target, more), of.ends);
  }

 private:
  Result<Value> weights_less_one(Builder& b, const Type& of) const {
    if (more_.size() == 1) return more_[0] == 0 ? Value() : b.number(more_[0], TN_F32);
    const auto n = std::ssize(more_);
    if (of.rank() == 0 || of.dims.back() != n)
      return invalid(
          cat("option positive_weight: expected one number, or as many as the last axis "
              "of prediction ",
              type_text(of), " has, got ", n));
    return b.take(b.edit().constant<float>(TN_F32, {n}, more_));
  }

  std::vector<float> more_;  // weights - 1
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(bce_with_logits,
           tenon::trainer::BceWithLogits,
           "trainer.bce_with_logits",
           "cross entropy of yes and no, from logits",
           R"({
  "properties": {
    "positive_weight": {"type": ["number", "array"], "items": {"type": "number", "exclusiveMinimum": 0}, "exclusiveMinimum": 0, "default": 1, "description": "pos_weight: weight of the positive class, or one for each of the last axis"}}})")
