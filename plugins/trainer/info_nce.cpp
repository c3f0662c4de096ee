// SPDX-License-Identifier: Apache-2.0
// "trainer.info_nce": which b belongs to a, among those of the batch (tenon/sdk/contrast.hpp), as
// in SimCLR and CLIP. a and b [n, d] are the model's first two outputs, with rows divided by their
// norms; row i of one belongs to row i of the other, and the loss is the mean over i. Equal samples
// in a batch are false negatives. At chance the loss is log n, so a smaller batch at an epoch's end
// has a smaller loss.
#include "tenon/sdk/contrast.hpp"
#include "tenon/sdk/setting.hpp"

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
    return mean_loss(b, info_nce(b, x, y, temperature, both_), objective.predictions);
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
