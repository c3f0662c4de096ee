// SPDX-License-Identifier: Apache-2.0
#pragma once
// Networks as quantizers leave them: QuantizeLinear and DequantizeLinear around operators.

#include "tenon/sdk/edit.hpp"

#include "mutants/mutation.hpp"

namespace tenon::fuzz {

// What operators with 8-bit forms read is quantized: activations by any scale and zero point,
// constant weights by tensor or by channel, constant biases in 32 bits. So are results, here and
// there. Some operators stay as they are.
Status quantize_network(EditView edit, Random& random);

}  // namespace tenon::fuzz
