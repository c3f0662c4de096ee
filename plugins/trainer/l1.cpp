// SPDX-License-Identifier: Apache-2.0
// "trainer.l1": the mean of |prediction - target| over all numbers; no slope where they are equal.
#include "objective.hpp"

namespace tenon::trainer {
namespace {

class L1 {
 public:
  static Result<L1> create(tn_ctx*, const Options&) { return L1{}; }

  Result<Value> build(EditView edit, const Objective& objective) const {
    Builder b(edit);
    TN_TRY(of, paired(b, objective));
    return mean_loss(b, b.op("Abs", {b.sub(of.prediction, of.target)}), of.ends);
  }
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(l1, tenon::trainer::L1, "trainer.l1", "mean absolute error", R"({"properties": {}})")
