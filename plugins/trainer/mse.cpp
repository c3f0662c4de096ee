// SPDX-License-Identifier: Apache-2.0
// "trainer.mse": the mean of (prediction - target)^2 over all numbers.
#include "objective.hpp"

namespace tenon::trainer {
namespace {

class Mse {
 public:
  static Result<Mse> create(tn_ctx*, const Options&) { return Mse{}; }

  Result<Value> build(EditView edit, const Objective& objective) const {
    Builder b(edit);
    TN_TRY(of, paired(b, objective));
    Value difference = b.sub(of.prediction, of.target);
    return mean_loss(b, b.mul(difference, difference), of.ends);
  }
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(mse, tenon::trainer::Mse, "trainer.mse", "mean squared error", R"({"properties": {}})")
