// SPDX-License-Identifier: Apache-2.0
#pragma once
// The running means of gradients and of their squares that Adam and what follows it keep:
//   m = beta1*m + (1 - beta1)*g;  v = beta2*v + (1 - beta2)*g*g
// divided by 1 - beta^t, as both start at zero (Kingma & Ba 2015, algorithm 1). States have the
// names that PyTorch gives them: exp_avg, exp_avg_sq, step. Parameters that rest with a layer
// (kRestsWithNote) have a count of their own, so that t is how often they were updated.

#include <cmath>
#include <map>
#include <string>

#include "coefficients.hpp"
#include "gradients.hpp"

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

  struct Shared {     // float32 scalars of one step
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
    Counts out;
    for (const Parameter& one : parameters) {
      std::string layer = rests_with(one);
      if (out.contains(layer)) continue;
      TN_TRY(shared, open_one(edit, b, layer.empty() ? word : cat(layer, "/", word), numerator));
      out.emplace(std::move(layer), shared);
    }
    return out;
  }

  // numerator * m / (sqrt(v) * root + epsilon), of this gradient.
  Result<Value> direction(
      Builder& b, Coefficients& c, const Parameter& one, Value g, const Counts& counts) const {
    const Shared& shared = counts.at(rests_with(one));
    uint32_t dtype = one.value.dtype();
    TN_TRY(first, Slot::open(b.edit(), cat(one.name, "/exp_avg"), one.value.type()));
    TN_TRY(second, Slot::open(b.edit(), cat(one.name, "/exp_avg_sq"), one.value.type()));
    Value m =
        b.add(b.mul(first.before, c.number(beta1_, dtype)), b.mul(g, c.number(1 - beta1_, dtype)));
    Value v = b.add(b.mul(second.before, c.number(beta2_, dtype)),
                    b.mul(b.mul(g, g), c.number(1 - beta2_, dtype)));
    TN_CHECK(b.status());
    TN_CHECK(first.close(b.edit(), m));
    TN_CHECK(second.close(b.edit(), v));
    Value size =
        b.add(b.mul(b.op("Sqrt", {v}), c.as(shared.root, dtype)), c.number(epsilon_, dtype));
    return b.div(b.mul(m, c.as(shared.numerator, dtype)), size);
  }

 private:
  static std::string rests_with(const Parameter& one) {
    return std::string(text_of(one.value.note(kRestsWithNote)));
  }

  Result<Shared> open_one(EditView edit, Builder& b, std::string_view word, Value numerator) const {
    TN_TRY(count, Slot::open(edit, free_name(edit.graph(), word), Type(TN_F32, {})));
    Value t = b.add(count.before, b.number(1, TN_F32));
    TN_CHECK(b.status());
    TN_CHECK(count.close(edit, t));
    Shared shared{b.div(numerator, unbiased(b, t, beta1_)),
                  b.op("Reciprocal", {b.op("Sqrt", {unbiased(b, t, beta2_)})})};
    TN_CHECK(b.status());
    return shared;
  }

  // Another group of parameters may have a count of its own.
  static std::string free_name(Graph graph, std::string_view word) {
    std::string name = cat(word, "/step");
    for (int i = 2; graph.find(name); ++i)
      name = cat(word, "/step", i);
    return name;
  }

  // 1 - beta^t. For small t the difference would cancel in float32; Elu is expm1 below 0.
  static Value unbiased(Builder& b, Value t, double beta) {
    return b.neg(b.op("Elu", {b.mul(t, b.number(std::log(beta), TN_F32))}));
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
