// SPDX-License-Identifier: Apache-2.0
// "trainer.focal": cross entropy of yes and no in which what is right already counts little (Lin et
// al. 2017, "Focal loss for dense object detection", equation 5), from logits z:
//   a_t * (1 - p_t)^gamma * -log(p_t), with p = 1/(1 + exp(-z)),
//   p_t = t*p + (1 - t)*(1 - p), a_t = t*alpha + (1 - t)*(1 - alpha)
// summed over all numbers and divided by how many there are, or how many are positive.
#include "binary.hpp"

namespace tenon::trainer {
namespace {

class Focal {
 public:
  static Result<Focal> create(tn_ctx*, const Options& options) {
    Focal out;
    if (options.has("alpha")) out.alpha_ = options.number("alpha");
    out.gamma_ = options.number("gamma");
    out.by_positives_ = options.text("divide_by") == "positives";
    return out;
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    Builder b(edit);
    TN_TRY(of, paired(b, objective));
    TN_CHECK(expect_logits(of.ends[0]));
    Value one = b.number(1, TN_F32), t = of.target, no = b.sub(one, t);
    Value parts = binary_cross_entropy(b, of.prediction, t);
    if (gamma_ > 0) {
      Value p = b.op("Sigmoid", {of.prediction});
      Value wrong = b.add(b.mul(p, no), b.mul(b.sub(one, p), t));
      // The power of 0 has no slope for a gamma below 1.
      Value some = b.op("Max", {wrong, b.number(1e-30, TN_F32)});
      parts = b.mul(parts, b.op("Pow", {some, b.number(gamma_, TN_F32)}));
    }
    if (alpha_)
      parts = b.mul(parts, b.add(b.mul(t, b.number(*alpha_, TN_F32)),
                                 b.mul(no, b.number(1 - *alpha_, TN_F32))));
    if (by_positives_) {
      TN_TRY(divided, divided_by_share(b, parts, b.op("ReduceMean", {t}, {{"keepdims", 0}})));
      parts = divided;
    }
    return mean_loss(b, parts, of.ends);
  }

 private:
  std::optional<double> alpha_;
  double gamma_ = 2;
  bool by_positives_ = false;
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(focal,
           tenon::trainer::Focal,
           "trainer.focal",
           "cross entropy of yes and no that looks at what is wrong",
           R"({
  "properties": {
    "alpha": {"type": "number", "minimum": 0, "maximum": 1, "description": "alpha: weight of the positive class, 1 - alpha of the negative one (Lin et al.: 0.25); equal when absent"},
    "gamma": {"type": "number", "minimum": 0, "default": 2, "description": "gamma: how strongly well-classified samples are down-weighted; 0: not"},
    "divide_by": {"type": "string", "enum": ["all", "positives"], "default": "all", "description": "the mean over all elements, or the sum divided by the number of positives"}}})")
