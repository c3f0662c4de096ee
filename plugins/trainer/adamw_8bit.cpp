// SPDX-License-Identifier: Apache-2.0
// "trainer.adamw_8bit": trainer.adamw with its two moments in 8 bits (blocks.hpp): 2.03 bytes for
// each number of a tensor of 4,096 and more, in place of 8. The update is from the moments as they
// are before they are rounded: a second moment that became 0 beside a first one would divide by
// epsilon.
#include "blocks.hpp"

namespace tenon::trainer {
namespace {

class AdamW8Bit {
 public:
  static Result<AdamW8Bit> create(tn_ctx*, const Options& options) {
    return AdamW8Bit{Moments::from(options), Decay::from(options)};
  }

  Status build(EditView edit, const Update& update, std::span<Value> after) const {
    TN_CHECK(decay_.check(edit.graph()));
    Builder b(edit);
    Coefficients constants(b);
    TN_TRY(counts, moments_.open(edit, b, "adamw_8bit", update.parameters, update.rate));
    // 1 - rate*decay as one number would lose digits in float32.
    Value pull;
    if (decay_.amount != 0)
      pull = b.mul(update.rate, decay_.number(constants, update.rate.dtype()));
    for (size_t i = 0; i < after.size(); ++i) {
      const Parameter& one = update.parameters[i];
      TN_TRY(change, moments_.direction(b, constants, one, one.gradient, counts, Blocks::keep));
      if (decay_.applies_to(one))
        change = b.add(change, b.mul(one.value, constants.as(pull, one.value.dtype())));
      after[i] = b.sub(one.value, change);
    }
    return b.status();
  }

  Moments moments_;
  Decay decay_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_OPTIMIZER(adamw_8bit,
                tenon::trainer::AdamW8Bit,
                "trainer.adamw_8bit",
                "trainer.adamw with moments in 8 bits",
                R"({"properties": {)" TRAINER_MOMENTS_OPTIONS("1e-8")
                    TRAINER_DECAY_OPTIONS("0.01") R"(}})")
