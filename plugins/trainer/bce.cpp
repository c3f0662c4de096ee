// SPDX-License-Identifier: Apache-2.0
// "trainer.bce": the mean over all numbers of the cross entropy of yes and no, where the prediction
// is a probability p and the target t is 1, 0, or a share between:
//   -(t*log p + (1 - t)*log(1 - p)), logarithms no less than -100, as in PyTorch
// A model that ends in Sigmoid is trained on what goes into it: the logarithm of a probability that
// was rounded to 1 loses all digits; where float16 rounds it, that is refused.
#include "binary.hpp"

namespace tenon::trainer {
namespace {

class Bce {
 public:
  static Result<Bce> create(tn_ctx*, const Options&) { return Bce{}; }

  Result<Value> build(EditView edit, const Objective& objective) const {
    Builder b(edit);
    TN_TRY(of, paired(b, objective));
    Node last = of.ends[0].producer();
    if (last && last.is("Sigmoid")) {
      Value logits = last.input(0);
      return mean_loss(b, binary_cross_entropy(b, b.cast(logits, TN_F32), of.target),
                       {logits, of.ends[1]});
    }
    Value one = b.number(1, TN_F32), p = of.prediction, t = of.target;
    // Of 0 it has no slope: that of Log is infinite there.
    auto logarithm = [&](Value x) {
      Value least = b.number(-100, TN_F32), is_zero = b.op("Equal", {x, b.number(0, TN_F32)});
      Value log = b.op("Log", {b.op("Where", {is_zero, one, x})});
      return b.op("Where", {is_zero, least, b.op("Max", {log, least})});
    };
    Value yes = b.mul(t, logarithm(p)), no = b.mul(b.sub(one, t), logarithm(b.sub(one, p)));
    return mean_loss(b, b.neg(b.add(yes, no)), of.ends, "fp32 float16=banned");
  }
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(bce,
           tenon::trainer::Bce,
           "trainer.bce",
           "cross entropy of yes and no, from probabilities",
           R"({"properties": {}})")
