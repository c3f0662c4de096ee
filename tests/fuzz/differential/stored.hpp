// SPDX-License-Identifier: Apache-2.0
#pragma once
// Constants as quantizers store them: integers, and a DequantizeLinear with one scale, or with one
// for each index of the first or the last axis.

#include <vector>

#include "tenon/sdk/edit.hpp"

#include "mutants/mutation.hpp"

namespace tenon::fuzz {

struct Stored {
  Value value;                // what the DequantizeLinear gives
  std::vector<float> scales;  // one, or one for each index of an axis
};

// constant: f32 of rank 1 and more, without NaN and infinities.
// dtype: TN_I8, TN_U8 (with a zero point of 128) or TN_I32.
Result<Stored> stored(EditView edit, Value constant, uint32_t dtype, Random& random);

}  // namespace tenon::fuzz
