// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options that several passes have, as members of the "properties" of their JSON: one source for
// what users read. They are macros, as a component's description is one literal.

#include "tenon/sdk/feed.hpp"
#include "tenon/sdk/padding.hpp"

// Of passes that run a model on calibration data.
// clang-format off
#define TENON_OBSERVED_OPTIONS \
  TENON_FEED_OPTIONS("calibration data", "256", "8") "," TENON_BACKEND_OPTION("runs the float model") "," \
  R"("non_finite": {"type": "string", "enum": ["refuse", "ignore"], "default": "refuse", "description": "NaN or infinity in a value during calibration"},)" TENON_MASK_OPTION

#define TENON_CALIBRATION_OPTIONS \
  TENON_OBSERVED_OPTIONS "," \
  R"("observer": {"type": "string", "default": "mse", "description": "entropy, minmax, moving_average, mse, percentile, or the id of another"},)" \
  R"("observer_options": {"type": "object", "description": "options of the observer"})"

// Of passes that take what calibration has found.
#define TENON_RANGES_OPTION \
  R"("ranges": {"type": "object", "description": "ranges that are known, [low, high] by the name of the value, as quantizer.calibrate reports them; other values are observed"})"
// clang-format on

// Of passes that choose what is stored in 8 bits.
#define TENON_STORAGE_OPTIONS                                                                                                                                                                                                       \
  R"("activations": {"type": "string", "enum": ["u8", "s8"], "default": "u8", "description": "u8: with a zero point; s8: symmetric"},)"                                                                                             \
  R"("per_channel": {"type": "boolean", "default": true, "description": "a scale for each output channel of a weight"},)"                                                                                                           \
  R"("weight_bits": {"type": "integer", "minimum": 2, "maximum": 8, "default": 8, "description": "bits of weights, which are stored in 8"},)"                                                                                       \
  R"("products": {"type": "string", "enum": ["none", "scores", "all"], "default": "none", "description": "products of two activations to quantize; scores: those that a Softmax reads, as in attention"},)" TENON_SELECTED_OPTIONS( \
      "nodes to quantize")

// Of passes that repair a quantized model by what the float one computes.
#define TENON_REPAIR_OPTIONS                                                                                              \
  TENON_FEED_OPTIONS("calibration data", "64", "8")                                                                       \
  R"(, "original": {"type": "graph", "description": "the float model that this one was made of"},)" TENON_BACKEND_OPTION( \
      "runs the models") "," TENON_MASK_OPTION

// Of passes that round stored weights again.
#define TENON_ROUNDED_WEIGHTS_OPTION \
  R"("weights": {"type": "string", "enum": ["all", "stored"], "default": "all", "description": "stored: only those that float nodes read, of recurrent cells; a model without any stays as it is"})"
