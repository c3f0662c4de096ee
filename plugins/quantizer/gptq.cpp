// SPDX-License-Identifier: Apache-2.0
// "quantizer.gptq": weights rounded once more, so that what layers give, not the weights, comes
// near to the float model (Frantar et al., ICLR 2023).
#include "algorithms/gptq.hpp"

#include "weight_rounding.hpp"

namespace tenon::quantizer {
namespace {

class Gptq : public WeightRounding {
 public:
  static Result<Gptq> create(tn_ctx* ctx, const Options& options) {
    GptqPlan plan{options.number("damping"), options.flag("largest_first")};
    TN_TRY(base,
           WeightRounding::create(ctx, options,
                                  [plan](const WeightGrid& grid, std::span<const double> hessian,
                                         const Rows& rows) -> Result<std::vector<float>> {
                                    return gptq(grid, hessian, plan, rows);
                                  }));
    return Result<Gptq>(Gptq(std::move(base)));
  }

 private:
  explicit Gptq(WeightRounding base) : WeightRounding(std::move(base)) {}
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(gptq,
           tenon::quantizer::Gptq,
           "quantizer.gptq",
           "weights rounded by what layers give, each column making up for those before it",
           R"({"required": ["data", "original"], "properties": {)" TENON_REPAIR_OPTIONS
           "," TENON_ROUNDED_WEIGHTS_OPTION R"(,
    "damping": {"type": "number", "minimum": 0, "default": 0.01,
                "description": "damping: share of the Hessian's mean diagonal that is added to it"},
    "largest_first": {"type": "boolean", "default": true,
                      "description": "activation order: columns with the largest inputs first"}}})")
