// SPDX-License-Identifier: Apache-2.0
// "layers.batch_norm": each channel less its running mean, divided by its running deviation, times
// weight [c] plus bias [c]. Training uses the batch's own figures and renews the running ones.
#include "layer.hpp"

namespace tenon::layers {
namespace {

class BatchNorm {
 public:
  static Result<BatchNorm> create(tn_ctx* ctx, const Options& options) {
    BatchNorm made;
    made.epsilon_ = options.number("epsilon");
    made.momentum_ = options.number("momentum");
    TN_TRY(zeros, Component::create(ctx, "tenon.initializer/1", "layers.zeros"));
    TN_TRY(ones, Component::create(ctx, "tenon.initializer/1", "layers.ones"));
    TN_TRY(init, Initializers::from(ctx, options));
    made.init_ = std::move(init);
    made.zeros_ = std::move(zeros);
    made.ones_ = std::move(ones);
    return made;
  }

  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_TRY(type, one_input(use, 2));
    TN_TRY(channels, known_size(type, 1, "channels"));
    std::vector<int64_t> shape{channels};
    std::vector<Value> inputs{
        use.input(0), use.parameter({"weight", shape, &init_.weight}),
        use.parameter({"bias", shape, &init_.bias}),
        use.parameter(
            {.name = "running_mean", .shape = shape, .initializer = &zeros_, .trained = false}),
        use.parameter(
            {.name = "running_var", .shape = shape, .initializer = &ones_, .trained = false})};
    // ONNX counts what stays, PyTorch and this option what is new.
    return use.outputs({use.op("BatchNormalization", inputs,
                               {{"epsilon", epsilon_}, {"momentum", 1 - momentum_}})});
  }

 private:
  double epsilon_ = 0, momentum_ = 0;
  Initializers init_;
  Component zeros_, ones_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(batch_norm,
            tenon::layers::BatchNorm,
            "layers.batch_norm",
            "each channel normalized over the batch, with running figures",
            R"({
  "properties": {
    "epsilon": {"type": "number", "exclusiveMinimum": 0, "default": 1e-5, "description": "epsilon, added to the variance"},
    "momentum": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.1, "description": "momentum: weight of a new batch in the running statistics"},)" TENON_INITS(
                "layers.ones", "layers.zeros") "}}")
