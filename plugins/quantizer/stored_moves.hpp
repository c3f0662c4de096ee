// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators that move elements of stored constants, as a look-up in a table of int8: the constant
// becomes floats, and the floats are moved.

#include "tenon/sdk/edit.hpp"

namespace tenon::quantizer {

// Look-ups that dequantize what they find become look-ups in a table of floats.
Status part_lookups(EditView edit);
// What a DequantizeLinear of moved constants gives, from the constants as floats; falsy: of others,
// or of scales that are along an axis, which may be moved.
Result<Value> moved_floats(EditView edit, Node dequantize);

}  // namespace tenon::quantizer
