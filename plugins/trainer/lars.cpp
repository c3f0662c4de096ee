// SPDX-License-Identifier: Apache-2.0
// "trainer.lars": layer-wise adaptive rates (You, Gitman & Ginsburg 2017, "Large batch training of
// convolutional networks", algorithm 1):
//   r = trust*|p| / (|g| + decay*|p|);  u = momentum*u + rate*r*(g + decay*p);  p -= u
// where |.| is the Euclidean norm of one tensor. The rate is inside the momentum, as in the paper:
// after a change of the rate the past keeps the one that it had.
#include "trust.hpp"

namespace tenon::trainer {
namespace {

class Lars {
 public:
  static Result<Lars> create(tn_ctx*, const Options& options) {
    return Lars{options.number("momentum"), options.number("trust"), options.flag("clip"),
                Decay::from(options), Trust::from(options)};
  }

  Status build(EditView edit, const Update& update, std::span<Value> after) const {
    TN_CHECK(decay_.check(edit.graph()));
    Builder b(edit);
    Coefficients constants(b);
    for (size_t i = 0; i < after.size(); ++i) {
      const Parameter& one = update.parameters[i];
      uint32_t dtype = one.value.dtype();
      TN_TRY(slot, Slot::open(edit, cat(one.name, "/momentum_buffer"), one.value.type()));
      Value rate = trust_.applies_to(one) ? own_rate(b, constants, one, update.rate) : update.rate;
      Value step = b.mul(decay_.added_to(b, constants, one), constants.as(rate, dtype));
      Value moved = b.add(b.mul(slot.before, constants.number(momentum_, dtype)), step);
      TN_CHECK(b.status());
      TN_CHECK(slot.close(edit, moved));
      after[i] = b.sub(one.value, moved);
    }
    return b.status();
  }

  Value own_rate(Builder& b, Coefficients& c, const Parameter& one, Value rate) const {
    Value size = norm_of(b, one.value), below = norm_of(b, one.gradient);
    if (decay_.applies_to(one)) below = b.add(below, b.mul(size, decay_.number(c, size.dtype())));
    Value ratio = ratio_or_one(b, size, b.mul(size, b.number(trust_amount_, size.dtype())), below);
    ratio = b.cast(ratio, rate.dtype());
    return clip_ ? b.op("Min", {rate, ratio}) : b.mul(rate, ratio);
  }

  double momentum_, trust_amount_;
  bool clip_;
  Decay decay_;
  Trust trust_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_OPTIMIZER(lars,
                tenon::trainer::Lars,
                "trainer.lars",
                "gradient descent with a rate for each tensor, for large batches",
                R"({
  "properties": {
    "momentum": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.9, "description": "momentum"},
    "trust": {"type": "number", "exclusiveMinimum": 0, "default": 0.001, "description": "trust coefficient: the update's norm relative to the tensor's"},
    "clip": {"type": "boolean", "default": false, "description": "clip: a tensor's rate is the minimum of rate and trust ratio, not their product, as LARC has it"},
    )" TRAINER_TRUST_OPTIONS TRAINER_DECAY_OPTIONS("0") R"(}})")
