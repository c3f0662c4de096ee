// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types that no other kernel reads: floating-point numbers of 8 and 4 bits, and integers of
// 4 and 2 bits, which are packed. To and from any type, as the operator Cast has it: by double, or
// exactly where both are integers.

#include "tenon/narrow.hpp"

#include "context.h"

namespace tenon::onednn::kernels {

// n elements, dense; from and to may be of any type. Neither overlaps the other.
void convert_elements(const Context& context,
                      ElementType from,
                      const void* source,
                      ElementType to,
                      void* target,
                      int64_t n,
                      const CastRule& rule = {});

// QuantizeLinear and DequantizeLinear of any types; the zero points are of the stored one. Scales
// lie as in QuantizeArgs: along an axis of this size with `inner` elements behind it, in blocks
// where there are any. Numbers are those of ONNX's rule: x / scale in f32, to the nearest even for
// integers, plus zero, held within the type; NaN becomes the lowest integer.
struct AnyQuantizeArgs {
  ElementType from, to, scale;
  int64_t axis = 1, inner = 1, block = 0, n = 0;
  bool saturates = true;  // of floating-point results
};
void quantize_any(const Context& context,
                  const AnyQuantizeArgs& args,
                  const void* x,
                  const void* scales,
                  const void* zeros,
                  void* y);
void dequantize_any(const Context& context,
                    const AnyQuantizeArgs& args,
                    const void* x,
                    const void* scales,
                    const void* zeros,
                    void* y);

}  // namespace tenon::onednn::kernels
