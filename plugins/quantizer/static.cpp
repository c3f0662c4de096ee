// SPDX-License-Identifier: Apache-2.0
// "quantizer.static": post-training quantization with ranges from calibration data. The result is
// the same graph with QuantizeLinear and DequantizeLinear nodes, which standard runtimes fuse.
#include "calibrated_pass.hpp"

TENON_PASS(static,
           tenon::quantizer::CalibratedPass,
           "quantizer.static",
           "8-bit weights and activations, ranges from calibration data",
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
    "reduce_range": {"type": "boolean", "default": false,
                     "description": "weights in 7 bits, for CPUs without VNNI"},
    "weight_bits": {"type": "integer", "minimum": 2, "maximum": 8, "description": "weights in so many bits; they are stored in 8"},
    "bias": {"type": "string", "enum": ["int32", "float32"], "default": "int32", "description": "how biases are stored"},
    "products": {"type": "boolean", "default": false, "description": "quantize products of two activations, as in attention"},
    "skip": {"type": ["array", "string"], "items": {"type": "string"},
             "description": "nodes to leave in float: patterns of names, operators or scopes, with * and ?"},
    "backend": {"type": ["array", "string"], "items": {"type": "string"},
                "description": "runs the float model; the first that is there of: onednn, reference"},
    "non_finite": {"type": "string", "enum": ["refuse", "ignore"], "default": "refuse",
                   "description": "NaN or infinity in a value during calibration"}},
  "required": ["data"]})")
