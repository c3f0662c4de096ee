// SPDX-License-Identifier: Apache-2.0
// "trainer.huber": with d = prediction - target the mean over all numbers of
//   d^2/2 where |d| < delta, else delta*(|d| - delta/2)
// (Huber 1964). PyTorch's SmoothL1Loss is this divided by its beta, which is the delta here.
#include "objective.hpp"

namespace tenon::trainer {
namespace {

class Huber {
 public:
  static Result<Huber> create(tn_ctx*, const Options& options) {
    return Huber{options.number("delta")};
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    Builder b(edit);
    TN_TRY(of, paired(b, objective));
    Value d = b.sub(of.prediction, of.target), size = b.op("Abs", {d});
    Value edge = b.number(delta_, TN_F32), square = b.mul(b.mul(d, d), b.number(0.5, TN_F32));
    Value line = b.mul(b.sub(size, b.number(delta_ / 2, TN_F32)), edge);
    return mean_loss(b, b.op("Where", {b.op("Less", {size, edge}), square, line}), of.ends);
  }

  double delta_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(huber,
           tenon::trainer::Huber,
           "trainer.huber",
           "squared error up to a size, and a line from there",
           R"({
  "properties": {
    "delta": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "delta: the error above which the loss is linear"}}})")
