// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elements of each type to f32 and back, as convert.h says it for the compiled kernels.

#include "../types.h"
#include "vector_code.h"

namespace tenon::onednn::kernels::code {

bool has_conversion(ElementType type);
// bits: an element in the low bits of each lane, zeros above.
Value to_real(VectorCode& c, Value bits, ElementType type, Quant quant);
Value from_real(VectorCode& c, Value real, ElementType type, Quant quant);

}  // namespace tenon::onednn::kernels::code
