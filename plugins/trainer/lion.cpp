// SPDX-License-Identifier: Apache-2.0
// "trainer.lion": the sign of a momentum (Chen et al. 2023, "Symbolic discovery of optimization
// algorithms", algorithm 2):
//   p -= rate * (sign(beta1*m + (1 - beta1)*g) + decay*p);  then m = beta2*m + (1 - beta2)*g
// Each element moves by the rate, so that rates are 3 to 10 times lower than AdamW's, and the decay
// as much higher. Where nothing pulls, the sign is 0.
#include "coefficients.hpp"

namespace tenon::trainer {
namespace {

class Lion {
 public:
  static Result<Lion> create(tn_ctx*, const Options& options) {
    return Lion{options.number("beta1"), options.number("beta2"), Decay::from(options)};
  }

  Status build(EditView edit, const Update& update, std::span<Value> after) const {
    TN_CHECK(decay_.check(edit.graph()));
    Builder b(edit);
    Coefficients constants(b);
    for (size_t i = 0; i < after.size(); ++i) {
      const Parameter& one = update.parameters[i];
      uint32_t dtype = one.value.dtype();
      TN_TRY(slot, Slot::open(edit, cat(one.name, "/exp_avg"), one.value.type()));
      auto mixed = [&](double beta) {
        return b.add(b.mul(slot.before, constants.number(beta, dtype)),
                     b.mul(one.gradient, constants.number(1 - beta, dtype)));
      };
      Value step = b.op("Sign", {mixed(beta1_)}), kept = mixed(beta2_);
      TN_CHECK(b.status());
      TN_CHECK(slot.close(edit, kept));
      if (decay_.applies_to(one))
        step = b.add(step, b.mul(one.value, decay_.number(constants, dtype)));
      after[i] = b.sub(one.value, b.mul(step, constants.as(update.rate, dtype)));
    }
    return b.status();
  }

  double beta1_, beta2_;
  Decay decay_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_OPTIMIZER(lion,
                tenon::trainer::Lion,
                "trainer.lion",
                "the sign of a momentum, the same step for each element",
                R"({
  "properties": {
    "beta1": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.9, "description": "beta1: weight of the momentum in the step's direction"},
    "beta2": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.99, "description": "beta2: decay rate of the momentum"},
    )" TRAINER_DECAY_OPTIONS("0") R"(}})")
