// SPDX-License-Identifier: Apache-2.0
// "quantizer.qat": a model to be trained on as it will run in 8 bits (Jacob et al., CVPR 2018,
// section 3). Ranges of activations come from calibration; weights stay float constants behind
// nodes that round them. Gradients pass by the straight-through rule of QuantizeLinear's row.
#include "calibrated_pass.hpp"
#include "calibration_options.hpp"

namespace tenon::quantizer {
namespace {

class Qat : public CalibratedPass {
 public:
  static Result<Qat> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(base, CalibratedPass::create(ctx, options));
    Qat out(std::move(base));
    out.insertion_.trained = true;
    out.insertion_.learns_values = options.text("scales") == "all";
    const std::string zeros = options.text("zeros");
    out.insertion_.zeros = zeros == "all"    ? ZerosKept::kAll
                           : zeros == "keep" ? ZerosKept::kAmongOthers
                                             : ZerosKept::kNone;
    out.insertion_.learned = options.text("scales") != "largest";
    return Result<Qat>(std::move(out));
  }

 private:
  explicit Qat(CalibratedPass base) : CalibratedPass(std::move(base)) {}
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(qat,
           tenon::quantizer::Qat,
           "quantizer.qat",
           "8-bit weights and activations that can be trained, ranges from calibration data",
           R"({"required": ["data"], "properties": {)" TENON_CALIBRATION_OPTIONS
           "," TENON_RANGES_OPTION "," TENON_STORAGE_OPTIONS R"(,
    "scales": {"type": "string", "enum": ["largest", "learned", "all"], "default": "largest",
               "description": "of weights: by their largest numbers, or LSQ: parameters that are trained too; all: of activations as well"},
    "zeros": {"type": "string", "enum": ["keep", "all", "train"], "default": "keep",
              "description": "numbers of weights that are 0, as pruning leaves them. keep: they stay so, but for output channels of nothing else, which may be new ones; all: those too; train: they are trained like others"}}})")
