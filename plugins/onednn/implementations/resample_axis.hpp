// SPDX-License-Identifier: Apache-2.0
#pragma once
// One axis of a Resize: dst[o, i, :] = sum over taps of weight[i, tap] * src[o, at[i, tap], :].

#include <cstdint>

#include "kernels/context.h"

namespace tenon::onednn {

struct ResampleAxis {
  int64_t outer = 1;
  int64_t in = 1;
  int64_t out = 1;
  int64_t inner = 1;
  // at, weight: [out, taps]. at -1 in the first tap: the result is the extrapolation value.
  int64_t taps = 1;
  const int64_t* at = nullptr;
  const float* weight = nullptr;
  float extrapolation = 0;
};

// [outer, in, inner] -> [outer, out, inner], dense; they may not overlap. A source element whose
// weight is 0 is not read, so that NaN does not spread.
void resample_axis(const kernels::Context& context,
                   const ResampleAxis& axis,
                   const float* src,
                   float* dst);

}  // namespace tenon::onednn
