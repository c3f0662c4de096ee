// SPDX-License-Identifier: Apache-2.0
// "trainer.triplet": a sample is nearer to one of its kind than to another (Schroff et al. 2015,
// "FaceNet", equation 3, without the squares), as PyTorch's TripletMarginLoss: the mean of
//   max(0, |a - p + 1e-6| - |a - n + 1e-6| + margin)
// where a, p, n [n, d] are the model's first three outputs: a network applied to three inputs.
// swap: the negative's distance to the positive where that is smaller (Balntas et al. 2016).
#include "tenon/sdk/setting.hpp"

#include "vectors.hpp"

namespace tenon::trainer {
namespace {

class Triplet {
 public:
  static Result<Triplet> create(tn_ctx*, const Options& options) {
    return Triplet{options.number("margin"), options.flag("swap")};
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    Builder b(edit);
    TN_TRY(of, vectors(b, objective, 3, "anchor, positive, negative"));
    Value far = distance(b, of[0], of[2]);
    if (swaps_) far = b.op("Min", {far, distance(b, of[1], of[2])});
    Value margin = setting(b, "margin", margin_);
    Value parts = b.op("Relu", {b.add(b.sub(distance(b, of[0], of[1]), far), margin)});
    return mean_loss(b, parts, objective.predictions);
  }

  // The offset, which is PyTorch's, is why the root has a slope where both are equal.
  static Value distance(Builder& b, Value x, Value y) {
    Value d = b.add(b.sub(x, y), b.number(1e-6, TN_F32));
    return b.op("Sqrt", {b.sum(b.mul(d, d), {1}, false)});
  }

  double margin_;
  bool swaps_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(triplet,
           tenon::trainer::Triplet,
           "trainer.triplet",
           "distances to a positive and a negative sample",
           R"({
  "properties": {
    "margin": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "how much farther the negative is to be"},
    "swap": {"type": "boolean", "default": false, "description": "swap: the negative's distance to the positive where that is smaller"}}})")
