// SPDX-License-Identifier: Apache-2.0
// "trainer.adam": Adam (Kingma & Ba 2015, algorithm 1) with weight decay inside the gradient, as
// PyTorch's Adam has it: g = g + decay*p, and then
//   p -= rate * (m/(1 - beta1^t)) / (sqrt(v/(1 - beta2^t)) + epsilon)
// What large gradients divide by, the decay is divided by as well: see trainer.adamw.
#include "moments.hpp"

namespace tenon::trainer {
namespace {

class Adam {
 public:
  static Result<Adam> create(tn_ctx*, const Options& options) {
    return Adam{Moments::from(options), Decay::from(options)};
  }

  Status build(EditView edit, const Update& update, std::span<Value> after) const {
    TN_CHECK(decay_.check(edit.graph()));
    Builder b(edit);
    Coefficients constants(b);
    TN_TRY(counts, moments_.open(edit, b, "adam", update.parameters, update.rate));
    for (size_t i = 0; i < after.size(); ++i) {
      const Parameter& one = update.parameters[i];
      Value g = decay_.added_to(b, constants, one);
      TN_TRY(change, moments_.direction(b, constants, one, g, counts));
      after[i] = b.sub(one.value, change);
    }
    return b.status();
  }

  Moments moments_;
  Decay decay_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_OPTIMIZER(adam,
                tenon::trainer::Adam,
                "trainer.adam",
                "Adam with weight decay inside the gradient",
                R"({"properties": {)" TRAINER_MOMENTS_OPTIONS("1e-8")
                    TRAINER_DECAY_OPTIONS("0") R"(}})")
