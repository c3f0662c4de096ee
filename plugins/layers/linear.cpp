// SPDX-License-Identifier: Apache-2.0
// "layers.linear": y = x W' + b over the last axis; weight [out, in], bias [out].
#include "layer.hpp"

namespace tenon::layers {
namespace {

class Linear {
 public:
  static Result<Linear> create(tn_ctx* ctx, const Options& options) {
    Linear made;
    made.out_ = options.integer("out");
    made.has_bias_ = options.flag("bias");
    TN_TRY(init, Initializers::from(ctx, options));
    made.init_ = std::move(init);
    return made;
  }

  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_TRY(type, one_input(use, 2));
    TN_TRY(in, known_size(type, -1, "features"));
    Value weight = use.parameter({"weight", {out_, in}, &init_.weight, in, out_});
    Value bias = has_bias_ ? use.parameter({"bias", {out_}, &init_.bias, in, out_}) : Value{};
    TN_CHECK(use.status());
    return use.outputs({affine(use, use.input(0), weight, bias)});
  }

 private:
  int64_t out_ = 0;
  bool has_bias_ = true;
  Initializers init_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(linear,
            tenon::layers::Linear,
            "layers.linear",
            "a product with a matrix over the last axis, and a bias",
            R"({"required": ["out"],
  "properties": {
    "out": {"type": "integer", "minimum": 1, "description": "output features"},
    "bias": {"type": "boolean", "default": true, "description": "adds a bias"},)" TENON_INITS(
                "layers.fan_uniform", "layers.fan_uniform") "}}")
