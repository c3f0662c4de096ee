// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products in 8 bits whose activations get their scale at run time, as "quantizer.dynamic" and
// others write them:
//   Mul(Cast(MatMulInteger(q, weight, zero)), Mul(scale, weight scale)), q, scale, zero =
//   DynamicQuantizeLinear(x)
// and the same with ConvInteger.

#include "tenon/sdk/edit.hpp"

namespace tenon::quantizer {

// Products of floats in the place of all that have this form: MatMul(x, DequantizeLinear(weight)).
// The number of them.
Result<uint64_t> float_products(EditView edit);

}  // namespace tenon::quantizer
