// SPDX-License-Identifier: Apache-2.0
#pragma once
// The running means of gradients and of their squares that Adam and what follows it keep:
//   m = beta1*m + (1 - beta1)*g;  v = beta2*v + (1 - beta2)*g*g
// divided by 1 - beta^t, as both start at zero (Kingma & Ba 2015, algorithm 1). States have the
// names that PyTorch gives them: exp_avg, exp_avg_sq, step. Parameters that rest with a layer
// (kRestsWithNote) have a count of their own, so that t is how often they were updated.

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "counts.hpp"

namespace tenon::trainer {

class Moments {
 public:
  static Moments from(const Options& options) {
    Moments out;
    out.beta1_ = options.number("beta1");
    out.beta2_ = options.number("beta2");
    out.epsilon_ = options.number("epsilon");
    return out;
  }

  struct Shared {     // scalars of one step, in the rate's type
    Value numerator;  // over 1 - beta1^t
    Value root;       // 1/sqrt(1 - beta2^t)
  };
  using Counts = std::map<std::string, Shared, std::less<>>;  // by layer; "": all others

  // Counts the step, in a state called WORD/step, and LAYER/WORD/step for those that rest with a
  // layer. numerator: the rate, or 1 where it comes later.
  Result<Counts> open(EditView edit,
                      Builder& b,
                      std::string_view word,
                      std::span<const Parameter> parameters,
                      Value numerator) const {
    TN_TRY(updates, count_updates(edit, b, word, parameters, numerator.dtype()));
    Counts out;
    for (const auto& [layer, t] : updates)
      out.emplace(layer, Shared{b.div(numerator, unbiased(b, t, beta1_)),
                                b.op("Reciprocal", {b.op("Sqrt", {unbiased(b, t, beta2_)})})});
    TN_CHECK(b.status());
    return out;
  }

  // What is kept of a gradient between steps: as it is, or in fewer bits.
  struct Kept {
    Value before;
    std::function<Status(Value)> close;
  };
  using Keep = Result<Kept> (*)(Builder&, const std::string& name, const Type&, bool has_signs);
  static Result<Kept> as_it_is(Builder& b, const std::string& name, const Type& type, bool) {
    TN_TRY(slot, Slot::open(b.edit(), name, type));
    return Kept{slot.before,
                [slot, edit = b.edit()](Value after) { return slot.close(edit, after); }};
  }

  // numerator * m / (sqrt(v) * root + epsilon), of this gradient.
  Result<Value> direction(Builder& b,
                          Coefficients& c,
                          const Parameter& one,
                          Value g,
                          const Counts& counts,
                          Keep keep = as_it_is) const {
    const Shared& shared = counts.at(rests_with(one));
    uint32_t dtype = one.value.dtype();
    TN_TRY(first, keep(b, cat(one.name, "/exp_avg"), one.value.type(), true));
    TN_TRY(second, keep(b, cat(one.name, "/exp_avg_sq"), one.value.type(), false));
    Value m =
        b.add(b.mul(first.before, c.number(beta1_, dtype)), b.mul(g, c.number(1 - beta1_, dtype)));
    Value v = b.add(b.mul(second.before, c.number(beta2_, dtype)),
                    b.mul(b.mul(g, g), c.number(1 - beta2_, dtype)));
    TN_CHECK(b.status());
    TN_CHECK(first.close(m));
    TN_CHECK(second.close(v));
    Value size =
        b.add(b.mul(b.op("Sqrt", {v}), c.as(shared.root, dtype)), c.number(epsilon_, dtype));
    return b.div(b.mul(m, c.as(shared.numerator, dtype)), size);
  }

 private:
  // 1 - beta^t. For small t the difference would cancel in float32; Elu is expm1 below 0.
  static Value unbiased(Builder& b, Value t, double beta) {
    return b.neg(b.op("Elu", {b.mul(t, b.number(std::log(beta), t.dtype()))}));
  }

  double beta1_ = 0, beta2_ = 0, epsilon_ = 0;
};

// Each raw text stays on its line: a line that goes on would become part of it.
// clang-format off
#define TRAINER_MOMENTS_OPTIONS(epsilon) \
  R"("beta1": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.9, )" \
  R"("description": "decay rate of the first moment"}, )" \
  R"("beta2": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.999, )" \
  R"("description": "decay rate of the second moment"}, )" \
  R"("epsilon": {"type": "number", "minimum": 0, "default": )" epsilon \
  R"(, "description": "epsilon in the denominator"}, )"
// clang-format on

}  // namespace tenon::trainer
