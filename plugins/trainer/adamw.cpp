// SPDX-License-Identifier: Apache-2.0
// "trainer.adamw": Adam with weight decay apart from the gradient (Loshchilov & Hutter 2019,
// algorithm 2, the decay times the rate):
//   m = beta1*m + (1 - beta1)*g;  v = beta2*v + (1 - beta2)*g*g
//   p = p*(1 - rate*decay) - rate * (m/(1 - beta1^t)) / (sqrt(v/(1 - beta2^t)) + epsilon)
#include <cmath>

#include "coefficients.hpp"

namespace tenon::trainer {
namespace {

class AdamW {
 public:
  static Result<AdamW> create(tn_ctx*, const Options& options) {
    AdamW out;
    out.beta1_ = options.number("beta1");
    out.beta2_ = options.number("beta2");
    out.epsilon_ = options.number("epsilon");
    out.decay_ = Decay::from(options);
    return out;
  }

  Status build(EditView edit, const Update& update, std::span<Value> after) const {
    TN_CHECK(decay_.check(edit.graph()));
    Builder b(edit);
    Coefficients constants(b);
    TN_TRY(count, Slot::open(edit, free_name(edit.graph()), Type(TN_F32, {})));
    Value t = b.add(count.before, b.number(1, TN_F32));
    TN_CHECK(b.status());
    TN_CHECK(count.close(edit, t));
    Shared shared{b.div(update.rate, unbiased(b, t, beta1_)),
                  b.op("Reciprocal", {b.op("Sqrt", {unbiased(b, t, beta2_)})}),
                  b.mul(update.rate, b.number(decay_.amount, TN_F32))};
    for (size_t i = 0; i < after.size(); ++i) {
      TN_TRY(next, step(b, constants, update.parameters[i], shared));
      after[i] = next;
    }
    return b.status();
  }

 private:
  struct Shared {  // scalars of one step
    Value rate;    // divided by 1 - beta1^t
    Value root;    // 1/sqrt(1 - beta2^t)
    Value decay;   // rate * decay: 1 less it would lose digits in float32
  };

  // Another group of parameters may have a count of its own.
  static std::string free_name(Graph graph) {
    std::string name = "adamw/step";
    for (int i = 2; graph.find(name); ++i)
      name = cat("adamw/step", i);
    return name;
  }

  // 1 - beta^t. For small t the difference would cancel in float32; Elu is expm1 below 0.
  static Value unbiased(Builder& b, Value t, double beta) {
    return b.neg(b.op("Elu", {b.mul(t, b.number(std::log(beta), TN_F32))}));
  }

  Result<Value> step(Builder& b,
                     Coefficients& c,
                     const Parameter& one,
                     const Shared& shared) const {
    uint32_t dtype = one.value.dtype();
    Value g = one.gradient;
    TN_TRY(first, Slot::open(b.edit(), cat(one.name, "/first"), one.value.type()));
    TN_TRY(second, Slot::open(b.edit(), cat(one.name, "/second"), one.value.type()));
    Value m =
        b.add(b.mul(first.before, c.number(beta1_, dtype)), b.mul(g, c.number(1 - beta1_, dtype)));
    Value v = b.add(b.mul(second.before, c.number(beta2_, dtype)),
                    b.mul(b.mul(g, g), c.number(1 - beta2_, dtype)));
    TN_CHECK(b.status());
    TN_CHECK(first.close(b.edit(), m));
    TN_CHECK(second.close(b.edit(), v));
    Value size =
        b.add(b.mul(b.op("Sqrt", {v}), c.as(shared.root, dtype)), c.number(epsilon_, dtype));
    Value change = b.div(b.mul(m, c.as(shared.rate, dtype)), size);
    if (decay_.applies_to(one)) change = b.add(change, b.mul(one.value, c.as(shared.decay, dtype)));
    return b.sub(one.value, change);
  }

  double beta1_ = 0, beta2_ = 0, epsilon_ = 0;
  Decay decay_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_OPTIMIZER(adamw,
                tenon::trainer::AdamW,
                "trainer.adamw",
                "Adam with weight decay apart from the gradient",
                R"({
  "properties": {
    "beta1": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.9, "description": "how much of the mean gradient is kept in a step"},
    "beta2": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.999, "description": "how much of the mean squared gradient is kept in a step"},
    "epsilon": {"type": "number", "minimum": 0, "default": 1e-8, "description": "added to the root, against division by zero"},
    )" TRAINER_DECAY_OPTIONS("0.01") R"(}})")
