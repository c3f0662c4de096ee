// SPDX-License-Identifier: Apache-2.0
// "layers.layer_norm": the last axes less their mean, divided by their deviation, times weight plus
// bias, both of the shape of these axes (Ba et al. 2016).
#include "layer.hpp"

namespace tenon::layers {
namespace {

class LayerNorm {
 public:
  static Result<LayerNorm> create(tn_ctx* ctx, const Options& options) {
    LayerNorm made;
    made.epsilon_ = options.number("epsilon");
    made.axes_ = options.integer("axes");
    made.has_bias_ = options.flag("bias");
    TN_TRY(init, Initializers::from(ctx, options));
    made.init_ = std::move(init);
    return made;
  }

  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_TRY(type, one_input(use, static_cast<size_t>(axes_) + 1));
    std::vector<int64_t> shape;
    for (int64_t axis = -axes_; axis < 0; ++axis) {
      TN_TRY(size, known_size(type, axis, "features"));
      shape.push_back(size);
    }
    std::vector<Value> inputs{use.input(0), use.parameter({"weight", shape, &init_.weight})};
    if (has_bias_) inputs.push_back(use.parameter({"bias", shape, &init_.bias}));
    return use.outputs(
        {use.op("LayerNormalization", inputs, {{"axis", -axes_}, {"epsilon", epsilon_}})});
  }

 private:
  double epsilon_ = 0;
  int64_t axes_ = 1;
  bool has_bias_ = true;
  Initializers init_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(layer_norm,
            tenon::layers::LayerNorm,
            "layers.layer_norm",
            "each sample normalized over its last axes",
            R"({
  "properties": {
    "epsilon": {"type": "number", "exclusiveMinimum": 0, "default": 1e-5, "description": "epsilon, added to the variance"},
    "axes": {"type": "integer", "minimum": 1, "maximum": 4, "default": 1, "description": "how many of the last axes are normalized"},
    "bias": {"type": "boolean", "default": true, "description": "adds a bias"},)" TENON_INITS(
                "layers.ones", "layers.zeros") "}}")
