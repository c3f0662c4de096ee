// SPDX-License-Identifier: Apache-2.0
#pragma once
// The trust ratio of optimizers that give each tensor a rate of its own (LARS, LAMB): the size of
// the tensor over the size of its update.

#include "coefficients.hpp"

namespace tenon::trainer {

// The Euclidean norm as a scalar of float32, or float64 where the tensor is.
inline Value norm_of(Builder& b, Value x) {
  Value wide = x.dtype() == TN_F64 ? x : b.cast(x, TN_F32);
  Value squares = b.op("ReduceSum", {b.mul(wide, wide)}, {{"keepdims", 0}});
  return b.op("Sqrt", {squares});
}

// above / below, and 1 where `size`, or what it is divided by, is zero: a tensor that starts at
// zero would stay there, and one without an update needs no ratio.
inline Value ratio_or_one(Builder& b, Value size, Value above, Value below) {
  Value zero = b.number(0, size.dtype()), one = b.number(1, size.dtype());
  Value known = b.op("And", {b.op("Greater", {size, zero}), b.op("Greater", {below, zero})});
  Value divisor = b.op("Where", {known, below, one});
  return b.op("Where", {known, b.div(above, divisor), one});
}

// Which tensors have a ratio of their own.
struct Trust {
  bool vectors = false;
  static Trust from(const Options& options) { return {options.flag("adapt_vectors")}; }
  bool applies_to(const Parameter& parameter) const {
    return vectors || parameter.value.type().rank() > 1;
  }
};
// clang-format off
#define TRAINER_TRUST_OPTIONS \
  R"("adapt_vectors": {"type": "boolean", "default": false, )" \
  R"("description": "a trust ratio for biases and scales of normalizations as well"}, )"
// clang-format on

}  // namespace tenon::trainer
