// SPDX-License-Identifier: Apache-2.0
// "layers.stochastic_depth": while training, drops what a residual branch adds, of each sample or
// of the whole batch, and divides what is left by the probability to be kept (Huang et al. 2016,
// whose scaling at test is this one; as torchvision's StochasticDepth); else nothing. It is a
// Dropout whose mask is one number a sample, which a note says to who trains, by a name that ONNX
// files keep.
#include "tenon/sdk/notes.hpp"

#include "layer.hpp"

namespace tenon::layers {
namespace {

class StochasticDepth {
 public:
  static Result<StochasticDepth> create(tn_ctx*, const Options& options) {
    return StochasticDepth{options.number("ratio"), options.text("over")};
  }
  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_CHECK(one_input(use, 1).status());
    Value made = use.op("Dropout", {use.input(0), use.number(ratio_, TN_F32)});
    TN_CHECK(use.status());
    TN_CHECK(use.edit().set_note(made.producer().id, kDropoutOverNote, any_text(over_)));
    return use.outputs({made});
  }

 private:
  StochasticDepth(double ratio, std::string over) : ratio_(ratio), over_(std::move(over)) {}
  double ratio_;
  std::string over_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(stochastic_depth,
            tenon::layers::StochasticDepth,
            "layers.stochastic_depth",
            "drops residual branches at random while training",
            R"({"order": ["ratio"],
  "properties": {
    "ratio": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.1, "description": "probability that a branch is dropped"},
    "over": {"type": "string", "enum": ["sample", "batch"], "default": "sample", "description": "sample: one draw for each; batch: one for all of them"}}})")
