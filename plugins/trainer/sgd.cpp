// SPDX-License-Identifier: Apache-2.0
// "trainer.sgd": stochastic gradient descent, with momentum as Sutskever et al. 2013 write it
// without the rate inside: u = momentum*u + g; p -= rate*u, or with Nesterov's look-ahead
// p -= rate*(g + momentum*u). Weight decay is added to the gradient.
#include "coefficients.hpp"

namespace tenon::trainer {
namespace {

class Sgd {
 public:
  static Result<Sgd> create(tn_ctx*, const Options& options) {
    Sgd out;
    out.momentum_ = options.number("momentum");
    out.nesterov_ = options.flag("nesterov");
    out.decay_ = Decay::from(options);
    if (out.nesterov_ && out.momentum_ == 0)
      return invalid("option nesterov: expected a momentum above 0 with it");
    return out;
  }

  Status build(EditView edit, const Update& update, std::span<Value> after) const {
    TN_CHECK(decay_.check(edit.graph()));
    Builder b(edit);
    Coefficients constants(b);
    for (size_t i = 0; i < after.size(); ++i) {
      const Parameter& one = update.parameters[i];
      uint32_t dtype = one.value.dtype();
      Value step = decay_.added_to(b, constants, one);
      if (momentum_ != 0) {
        TN_TRY(slot, Slot::open(edit, cat(one.name, "/momentum_buffer"), one.value.type()));
        Value momentum = constants.setting("momentum", momentum_, dtype);
        Value moved = b.add(b.mul(slot.before, momentum), step);
        TN_CHECK(b.status());
        TN_CHECK(slot.close(edit, moved));
        step = nesterov_ ? b.add(step, b.mul(moved, momentum)) : moved;
      }
      after[i] = b.sub(one.value, b.mul(step, constants.as(update.rate, dtype)));
    }
    return b.status();
  }

 private:
  double momentum_ = 0;
  bool nesterov_ = false;
  Decay decay_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_OPTIMIZER(sgd,
                tenon::trainer::Sgd,
                "trainer.sgd",
                "stochastic gradient descent with momentum",
                R"({
  "properties": {
    "momentum": {"type": "number", "minimum": 0, "maximum": 1, "default": 0, "description": "momentum"},
    "nesterov": {"type": "boolean", "default": false, "description": "Nesterov momentum"},
    )" TRAINER_DECAY_OPTIONS("0") R"(}})")
