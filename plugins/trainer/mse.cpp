// SPDX-License-Identifier: Apache-2.0
// "trainer.mse": the mean of (prediction - target)^2 over all numbers.
#include "objective.hpp"

namespace tenon::trainer {
namespace {

class Mse {
 public:
  static Result<Mse> create(tn_ctx*, const Options&) { return Mse{}; }

  Result<Value> build(EditView edit, const Objective& objective) const {
    TN_TRY(of, compared(objective));
    Builder b(edit);
    Value target = b.cast(of.target, TN_F32);
    Type wanted = of.wanted;
    // One number a sample, which a table gives as [n] and a model as [n, 1].
    if (wanted.rank() + 1 == of.predicted.rank() && of.predicted.dims.back() == 1) {
      target = b.op("Unsqueeze", {target, b.ints({-1})});
      wanted.dims.push_back(1);
    }
    if (!fits(of.predicted, wanted))
      return invalid(cat("target ", of.target.name(), ": expected the shape of prediction ",
                         of.prediction.name(), ", ", type_text(of.predicted), ", got ",
                         type_text(of.wanted)));
    Value difference = b.sub(b.cast(of.prediction, TN_F32), target);
    return mean_loss(b, b.mul(difference, difference), {of.prediction, of.target});
  }
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(mse, tenon::trainer::Mse, "trainer.mse", "mean squared error", R"({"properties": {}})")
