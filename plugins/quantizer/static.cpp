// SPDX-License-Identifier: Apache-2.0
// "quantizer.static": post-training quantization with ranges from calibration data. The result is
// the same graph with QuantizeLinear and DequantizeLinear nodes, which standard runtimes fuse.
#include "calibrated_pass.hpp"
#include "calibration_options.hpp"

TENON_PASS(static,
           tenon::quantizer::CalibratedPass,
           "quantizer.static",
           "8-bit weights and activations, ranges from calibration data",
           R"({"required": ["data"], "properties": {)" TENON_CALIBRATION_OPTIONS
           "," TENON_RANGES_OPTION "," TENON_STORAGE_OPTIONS R"(,
    "reduce_range": {"needs": {"weight_bits": [8]}, "type": "boolean", "default": false,
                     "description": "weights in 7 bits, for CPUs without VNNI"},
    "bias": {"type": "string", "enum": ["int32", "float32"], "default": "int32", "description": "how biases are stored"}}})")
