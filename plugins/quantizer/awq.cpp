// SPDX-License-Identifier: Apache-2.0
// "quantizer.awq": input channels that carry much keep more digits of their weights in 4 bits (Lin
// et al., MLSys 2024). Apply it before `quantizer.weights` with 4 bits.
#include "algorithms/awq.hpp"

#include "input_scaling.hpp"

namespace tenon::quantizer {
namespace {

class Awq : public InputScaling {
 public:
  static Result<Awq> create(tn_ctx* ctx, const Options& options) {
    int64_t group = options.integer("group");
    TN_TRY(base, InputScaling::create(ctx, options, [group](const ScaledLayer& layer) {
             return activation_aware(layer, group);
           }));
    return Result<Awq>(Awq(std::move(base)));
  }

 private:
  explicit Awq(InputScaling base) : InputScaling(std::move(base)) {}
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(awq,
           tenon::quantizer::Awq,
           "quantizer.awq",
           "input channels that carry much keep more digits of their 4-bit weights",
           R"({"required": ["data"], "properties": {)" TENON_INPUT_SCALING_OPTIONS R"(,
    "gain": {"type": "number", "minimum": 0, "default": 0.5, "description": "dB of SNR that a product has to gain, or it is left as it is"},
    "group": {"type": "integer", "minimum": 8, "default": 32, "description": "group size, elements that will share a scale"}}})")
