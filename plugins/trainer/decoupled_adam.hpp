// SPDX-License-Identifier: Apache-2.0
#pragma once
// Adam with weight decay apart from the gradient (Loshchilov & Hutter 2019, algorithm 2, the decay
// times the rate), whose moments are kept as the optimizer has them:
//   p = p*(1 - rate*decay) - rate * (m/(1 - beta1^t)) / (sqrt(v/(1 - beta2^t)) + epsilon)
#include "moments.hpp"

namespace tenon::trainer {

// Form: kName, whose count of updates is a state; keep, which reads and writes one moment.
template <class Form>
class DecoupledAdam {
 public:
  static Result<DecoupledAdam> create(tn_ctx*, const Options& options) {
    return DecoupledAdam{Moments::from(options), Decay::from(options)};
  }

  Status build(EditView edit, const Update& update, std::span<Value> after) const {
    TN_CHECK(decay_.check(edit.graph()));
    Builder b(edit);
    Coefficients constants(b);
    TN_TRY(counts, moments_.open(edit, b, Form::kName, update.parameters, update.rate));
    // 1 - rate*decay as one number would lose digits in float32.
    Value pull;
    if (decay_.amount != 0)
      pull = b.mul(update.rate, decay_.number(constants, update.rate.dtype()));
    for (size_t i = 0; i < after.size(); ++i) {
      const Parameter& one = update.parameters[i];
      TN_TRY(change, moments_.direction(b, constants, one, one.gradient, counts, Form::keep));
      if (decay_.applies_to(one))
        change = b.add(change, b.mul(one.value, constants.as(pull, one.value.dtype())));
      after[i] = b.sub(one.value, change);
    }
    return b.status();
  }

  Moments moments_;
  Decay decay_;
};

}  // namespace tenon::trainer
