// SPDX-License-Identifier: Apache-2.0
// "trainer.info_nce": which b belongs to a, among those of the batch (van den Oord et al. 2018,
// equation 4; as in SimCLR and CLIP): a and b [n, d] are the model's first two outputs, row i of
// one belongs to row i of the other, and the loss is the mean over i of
//   -log(exp(a_i b_i / t) / sum_j exp(a_i b_j / t)), rows divided by their norms, t the temperature
// both: the mean of that and of the same for b among all a. Equal samples in a batch are false
// negatives; by chance it is log n, so a smaller batch at an epoch's end has a smaller loss.
#include "vectors.hpp"

namespace tenon::trainer {
namespace {

class InfoNce {
 public:
  static Result<InfoNce> create(tn_ctx*, const Options& options) {
    return InfoNce{options.number("temperature"), options.flag("both"), options.flag("normalize")};
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    Builder b(edit);
    TN_TRY(of, vectors(b, objective, 2, "samples, and what belongs to them"));
    Value x = normalizes_ ? normalized(b, of[0]) : of[0];
    Value y = normalizes_ ? normalized(b, of[1]) : of[1];
    Value temperature = setting(b, "temperature", temperature_);
    Value own = b.div(b.sum(b.mul(x, y), {1}, false), temperature);
    Value scores = b.div(b.op("MatMul", {x, b.transpose(y, {1, 0})}), temperature);
    auto among = [&](int64_t axis) {
      Value all = b.op("ReduceLogSumExp", {scores, b.ints({axis})}, {{"keepdims", 0}});
      return b.sub(all, own);
    };
    Value parts = among(1);
    if (both_) parts = b.mul(b.add(parts, among(0)), b.number(0.5, TN_F32));
    return mean_loss(b, parts, objective.predictions);
  }

  static Value normalized(Builder& b, Value x) {
    Value squares = b.op("Max", {b.sum(b.mul(x, x), {1}), b.number(1e-24, TN_F32)});
    return b.div(x, b.op("Sqrt", {squares}));
  }

  double temperature_;
  bool both_, normalizes_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(info_nce,
           tenon::trainer::InfoNce,
           "trainer.info_nce",
           "which of a batch's vectors belong together",
           R"({
  "properties": {
    "temperature": {"type": "number", "exclusiveMinimum": 0, "default": 0.07, "description": "temperature of the scores"},
    "both": {"type": "boolean", "default": false, "description": "in both directions, and their mean"},
    "normalize": {"type": "boolean", "default": true, "description": "cosines as scores; false: products"}}})")
