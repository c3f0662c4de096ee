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
    return BceWithLogits{options.number("positive_weight")};
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    Builder b(edit);
    TN_TRY(of, paired(b, objective));
    TN_CHECK(expect_logits(of.ends[0]));
    return mean_loss(b, binary_cross_entropy(b, of.prediction, of.target, weight_), of.ends);
  }

  double weight_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(bce_with_logits,
           tenon::trainer::BceWithLogits,
           "trainer.bce_with_logits",
           "cross entropy of yes and no, from logits",
           R"({
  "properties": {
    "positive_weight": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "pos_weight: weight of the positive class"}}})")
