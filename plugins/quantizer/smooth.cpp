// SPDX-License-Identifier: Apache-2.0
// "quantizer.smooth": outliers of single input channels go from what products read into their
// weights (SmoothQuant, Xiao et al., ICML 2023), with an exponent for each layer, and none where it
// would not help. Apply it before quantizing.
#include "algorithms/smooth.hpp"

#include "input_scaling.hpp"

namespace tenon::quantizer {
namespace {

class Smooth : public InputScaling {
 public:
  static Result<Smooth> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(base, InputScaling::create(ctx, options, smoothed));
    return Result<Smooth>(Smooth(std::move(base)));
  }

 private:
  explicit Smooth(InputScaling base) : InputScaling(std::move(base)) {}
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(smooth,
           tenon::quantizer::Smooth,
           "quantizer.smooth",
           "outliers of input channels go into the weights of products",
           R"({"required": ["data"], "properties": {)" TENON_INPUT_SCALING_OPTIONS R"(,
    "gain": {"type": "number", "minimum": 0, "default": 3, "description": "dB of SNR that a product has to gain, or it is left as it is"}}})")
