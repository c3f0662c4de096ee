// SPDX-License-Identifier: Apache-2.0
// "trainer.rmsprop": gradients over the root of their mean square (Tieleman & Hinton 2012, lecture
// 6.5), as PyTorch's RMSprop: with g = g + decay*p
//   v = alpha*v + (1 - alpha)*g*g;  step = g / (sqrt(v) + epsilon);  p -= rate*step
// centered: sqrt(v - a*a) with a = alpha*a + (1 - alpha)*g (Graves 2013, equation 38);
// momentum: u = momentum*u + step;  p -= rate*u. Nothing corrects that v starts at zero: the first
// steps are 1/sqrt(1 - alpha) times as long as later ones, so begin with a warm-up.
#include "coefficients.hpp"

namespace tenon::trainer {
namespace {

class RmsProp {
 public:
  static Result<RmsProp> create(tn_ctx*, const Options& options) {
    return RmsProp{options.number("alpha"), options.number("epsilon"), options.number("momentum"),
                   options.flag("centered"), Decay::from(options)};
  }

  Status build(EditView edit, const Update& update, std::span<Value> after) const {
    TN_CHECK(decay_.check(edit.graph()));
    Builder b(edit);
    Coefficients constants(b);
    for (size_t i = 0; i < after.size(); ++i) {
      const Parameter& one = update.parameters[i];
      uint32_t dtype = one.value.dtype();
      TN_TRY(step, direction(b, constants, one));
      after[i] = b.sub(one.value, b.mul(step, constants.as(update.rate, dtype)));
    }
    return b.status();
  }

  // slot = alpha*slot + (1 - alpha)*x
  Result<Value> mean(
      Builder& b, Coefficients& c, const Parameter& one, const char* slot, Value x) const {
    uint32_t dtype = one.value.dtype();
    TN_TRY(kept, Slot::open(b.edit(), cat(one.name, "/", slot), one.value.type()));
    Value next =
        b.add(b.mul(kept.before, c.number(alpha_, dtype)), b.mul(x, c.number(1 - alpha_, dtype)));
    TN_CHECK(b.status());
    TN_CHECK(kept.close(b.edit(), next));
    return next;
  }

  Result<Value> direction(Builder& b, Coefficients& c, const Parameter& one) const {
    uint32_t dtype = one.value.dtype();
    Value g = decay_.added_to(b, c, one);
    TN_TRY(v, mean(b, c, one, "square_avg", b.mul(g, g)));
    if (centered_) {
      TN_TRY(a, mean(b, c, one, "grad_avg", g));
      // A mean of squares is no less than the square of the mean, but for rounding.
      v = b.op("Max", {b.sub(v, b.mul(a, a)), c.number(0, dtype)});
    }
    Value step = b.div(g, b.add(b.op("Sqrt", {v}), c.number(epsilon_, dtype)));
    if (momentum_ == 0) return step;
    TN_TRY(slot, Slot::open(b.edit(), cat(one.name, "/momentum_buffer"), one.value.type()));
    Value moved = b.add(b.mul(slot.before, c.number(momentum_, dtype)), step);
    TN_CHECK(b.status());
    TN_CHECK(slot.close(b.edit(), moved));
    return moved;
  }

  double alpha_, epsilon_, momentum_;
  bool centered_;
  Decay decay_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_OPTIMIZER(rmsprop,
                tenon::trainer::RmsProp,
                "trainer.rmsprop",
                "gradients over the root of their mean square",
                R"({
  "properties": {
    "alpha": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.99, "description": "alpha: decay rate of the mean square"},
    "epsilon": {"type": "number", "minimum": 0, "default": 1e-8, "description": "epsilon in the denominator"},
    "momentum": {"type": "number", "minimum": 0, "maximum": 1, "default": 0, "description": "momentum"},
    "centered": {"type": "boolean", "default": false, "description": "centered: divide by the variance in place of the mean square"},
    )" TRAINER_DECAY_OPTIONS("0") R"(}})")
