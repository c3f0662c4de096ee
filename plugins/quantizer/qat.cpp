// SPDX-License-Identifier: Apache-2.0
// "quantizer.qat": a model to be trained on as it will run in 8 bits (Jacob et al., CVPR 2018,
// section 3). Ranges of activations come from calibration; weights stay float constants behind
// nodes that round them. Gradients pass by the straight-through rule of QuantizeLinear's row.
#include "calibrated_pass.hpp"

namespace tenon::quantizer {
namespace {

class Qat : public CalibratedPass {
 public:
  static Result<Qat> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(base, CalibratedPass::create(ctx, options));
    Qat out(std::move(base));
    out.insertion_.trained = true;
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
           R"({
  "properties": {
    "data": {"type": "component", "role": "tenon.dataset/1", "description": "calibration data: a data set, an id or a file"},
    "samples": {"type": "integer", "minimum": 1, "default": 256, "description": "at most so many samples"},
    "batch": {"type": "integer", "minimum": 1, "default": 8, "description": "samples at once"},
    "observer": {"type": "string", "default": "mse",
                 "description": "entropy, minmax, moving_average, mse, percentile, or the id of another"},
    "observer_options": {"type": "object", "description": "options of the observer"},
    "activations": {"type": "string", "enum": ["u8", "s8"], "default": "u8",
                    "description": "u8: with a zero point; s8: symmetric"},
    "per_channel": {"type": "boolean", "default": true, "description": "a scale for each output channel of a weight"},
    "weight_bits": {"type": "integer", "minimum": 2, "maximum": 8, "default": 8,
                    "description": "weights in so many bits; they are stored in 8"},
    "products": {"type": "boolean", "default": false, "description": "quantize products of two activations, as in attention"},
    "skip": {"type": ["array", "string"], "items": {"type": "string"},
             "description": "nodes to leave in float: patterns of names, operators or scopes, with * and ?"},
    "backend": {"type": ["array", "string"], "items": {"type": "string"},
                "description": "runs the float model; the first that is there of: onednn, reference"},
    "non_finite": {"type": "string", "enum": ["refuse", "ignore"], "default": "refuse",
                   "description": "NaN or infinity in a value during calibration"}},
  "required": ["data"]})")
