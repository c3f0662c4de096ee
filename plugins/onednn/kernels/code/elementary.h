// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions that the others are made of, for each instruction set: AVX-512 has instructions for
// exponents and tables of 16, elsewhere exponents are taken apart by their bits and tables hold 8.

#include <vector>

#include "vector_code.h"

namespace tenon::onednn::kernels::code {

Value with_sign_of(VectorCode& c, Value magnitude, Value x);
// coefficients[0] + coefficients[1] z + ...
Value polynomial(VectorCode& c, const std::vector<double>& coefficients, Value z);

Value exp(VectorCode& c, Value x);
Value log(VectorCode& c, Value x);
Value tanh(VectorCode& c, Value x);
Value erf(VectorCode& c, Value x);
Value sin(VectorCode& c, Value x);
Value cos(VectorCode& c, Value x);
Value tan(VectorCode& c, Value x);
Value atan(VectorCode& c, Value x);
Value asin(VectorCode& c, Value x);
Value acos(VectorCode& c, Value x);

// For results that are only stored in bf16 (intrinsics.h says how far off they may be).
Value short_exp(VectorCode& c, Value x);
Value short_erf(VectorCode& c, Value x);

}  // namespace tenon::onednn::kernels::code
