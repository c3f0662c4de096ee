// SPDX-License-Identifier: Apache-2.0
#pragma once
// What losses of yes and no share: the logit z stands for the probability 1/(1 + exp(-z)).

#include "objective.hpp"

namespace tenon::trainer {

// (1 - t)*z + (1 + (weight - 1)*t)*log(1 + exp(-z)): nothing overflows, whatever z is.
// more: weight - 1, for all numbers or for each on the last axis; none: 0.
inline Value binary_cross_entropy(Builder& b, Value z, Value t, Value more = {}) {
  Value one = b.number(1, TN_F32), rest = b.op("Softplus", {b.neg(z)});
  if (more) rest = b.mul(rest, b.add(one, b.mul(t, more)));
  return b.add(b.mul(b.sub(one, t), z), rest);
}

// A logit that went through Sigmoid would go through it twice.
inline Status expect_logits(Value prediction) {
  Node last = prediction.producer();
  if (!last || !last.is("Sigmoid")) return {};
  return invalid(cat("prediction ", prediction.name(),
                     ": expected logits, got probabilities of a final Sigmoid; use trainer.bce, "
                     "which is trained on what goes into it"));
}

}  // namespace tenon::trainer
