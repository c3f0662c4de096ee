// SPDX-License-Identifier: Apache-2.0
// "layers.rms_norm": the last axis divided by its root mean square, times weight (Zhang and
// Sennrich 2019).
#include "layer.hpp"

namespace tenon::layers {
namespace {

class RmsNorm {
 public:
  static Result<RmsNorm> create(tn_ctx* ctx, const Options& options) {
    RmsNorm made;
    made.epsilon_ = options.number("epsilon");
    TN_TRY(init, Initializers::from(ctx, options, false));
    made.init_ = std::move(init);
    return made;
  }

  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_TRY(type, one_input(use, 2));
    TN_TRY(size, known_size(type, -1, "features"));
    Value scale = use.parameter({"weight", {size}, &init_.weight});
    return use.outputs(
        {use.op("RMSNormalization", {use.input(0), scale}, {{"axis", -1}, {"epsilon", epsilon_}})});
  }

 private:
  double epsilon_ = 0;
  Initializers init_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(rms_norm,
            tenon::layers::RmsNorm,
            "layers.rms_norm",
            "each sample divided by the root mean square of its last axis",
            R"({"class": "RMSNorm",
  "properties": {
    "epsilon": {"type": "number", "exclusiveMinimum": 0, "default": 1e-6, "description": "epsilon, added to the mean square"},)" TENON_WEIGHT_INIT(
                "layers.ones") "}}")
