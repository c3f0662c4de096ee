// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products and pointwise (1x1) convolutions with known weights on AMX tiles
// (kernels/tile_product.h), in int8 and, with precision=bf16, in bf16. What follows the sums is
// taken along (code_tail.hpp). A product of whose epilogue the kernel knows only a part is left to
// oneDNN.

#include "product.hpp"

namespace tenon::onednn {

// Each is false, and nothing is done, where the kernel does not apply.
bool lower_tile_product(Lowering& lowering, const Product& product, const Tail& tail);
bool lower_tile_conv(Lowering& lowering, int node, const Tail& tail);

}  // namespace tenon::onednn
