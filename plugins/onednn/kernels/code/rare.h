// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions that generated code calls for numbers that its own formulas do not reach, which are
// rare.

#include <cstdint>

#include "vector_code.h"

namespace tenon::onednn::kernels::code {

// Beyond this magnitude sin, cos and tan are called: the multiple of pi/2 that is taken off would
// have more bits than f32 holds.
constexpr float kTrigLimit = 4e6F;

// Of x[i] beyond the limit, to y[i]; the other lanes stay.
using RareFunction = void (*)(const float* x, float* y, int64_t lanes);
RareFunction rare_function(Rare function);

}  // namespace tenon::onednn::kernels::code
