// SPDX-License-Identifier: Apache-2.0
// "trainer.smooth_l1": with d = prediction - target the mean over all numbers of
//   d^2/(2*beta) where |d| < beta, else |d| - beta/2
// (Girshick 2015, "Fast R-CNN", equation 3, with PyTorch's beta): slopes are at most 1.
#include "objective.hpp"

namespace tenon::trainer {
namespace {

class SmoothL1 {
 public:
  static Result<SmoothL1> create(tn_ctx*, const Options& options) {
    return SmoothL1{options.number("beta")};
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    Builder b(edit);
    TN_TRY(of, paired(b, objective));
    Value d = b.sub(of.prediction, of.target), size = b.op("Abs", {d});
    Value square = b.mul(b.mul(d, d), b.number(0.5 / beta_, TN_F32));
    Value line = b.sub(size, b.number(beta_ / 2, TN_F32));
    Value is_small = b.op("Less", {size, b.number(beta_, TN_F32)});
    return mean_loss(b, b.op("Where", {is_small, square, line}), of.ends);
  }

  double beta_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(smooth_l1,
           tenon::trainer::SmoothL1,
           "trainer.smooth_l1",
           "absolute error, squared where it is small",
           R"({
  "properties": {
    "beta": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "beta: the error below which the loss is quadratic"}}})")
