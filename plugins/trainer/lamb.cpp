// SPDX-License-Identifier: Apache-2.0
// "trainer.lamb": layer-wise adaptive moments (You et al. 2020, "Large batch optimization for deep
// learning", algorithm 2): with Adam's m and v,
//   u = (m/(1 - beta1^t)) / (sqrt(v/(1 - beta2^t)) + epsilon) + decay*p
//   p -= rate * |p|/|u| * u
// where |.| is the Euclidean norm of one tensor. The paper's function of |p| is the identity here;
// gradients are not divided by their common norm first, which some implementations do: that is
// clip_norm.
#include "moments.hpp"
#include "trust.hpp"

namespace tenon::trainer {
namespace {

class Lamb {
 public:
  static Result<Lamb> create(tn_ctx*, const Options& options) {
    return Lamb{Moments::from(options), Decay::from(options), Trust::from(options),
                options.number("largest_ratio")};
  }

  Status build(EditView edit, const Update& update, std::span<Value> after) const {
    TN_CHECK(decay_.check(edit.graph()));
    Builder b(edit);
    Coefficients constants(b);
    TN_TRY(counts, moments_.open(edit, b, "lamb", update.parameters,
                                 constants.number(1, update.rate.dtype())));
    for (size_t i = 0; i < after.size(); ++i) {
      const Parameter& one = update.parameters[i];
      uint32_t dtype = one.value.dtype();
      TN_TRY(u, moments_.direction(b, constants, one, one.gradient, counts));
      if (decay_.applies_to(one)) u = b.add(u, b.mul(one.value, decay_.number(constants, dtype)));
      Value rate = update.rate;
      if (trust_.applies_to(one)) rate = b.mul(rate, b.cast(ratio(b, one.value, u), rate.dtype()));
      after[i] = b.sub(one.value, b.mul(u, constants.as(rate, dtype)));
    }
    return b.status();
  }

  Value ratio(Builder& b, Value p, Value u) const {
    Value size = norm_of(b, p), made = ratio_or_one(b, size, size, norm_of(b, u));
    return largest_ > 0 ? b.op("Min", {made, b.number(largest_, made.dtype())}) : made;
  }

  Moments moments_;
  Decay decay_;
  Trust trust_;
  double largest_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_OPTIMIZER(
    lamb,
    tenon::trainer::Lamb,
    "trainer.lamb",
    "Adam with a rate for each tensor, for large batches",
    R"({"properties": {)" TRAINER_MOMENTS_OPTIONS("1e-6") TRAINER_TRUST_OPTIONS
    R"("largest_ratio": {"type": "number", "minimum": 0, "default": 0, "description": "upper limit of the trust ratio, a tensor's norm to that of its update; 0: none"}, )" TRAINER_DECAY_OPTIONS(
        "0.01") R"(}})")
