// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products whose weights are read in 4 bits (kernels/int4_product.h). What follows the sums is
// taken along (gemm_epilogue.hpp).

#include "int4_matrix.hpp"
#include "product.hpp"

namespace tenon::onednn {

// What a file says about the other operand: ONNX Runtime's accuracy_level, 1 and 4.
enum class Int4Rows : uint8_t { kAsAsked, kReal, kInt8 };

// One step: the real rows of `a`, [.., k], times the matrix, plus the bias, a known row or kNone.
void lower_int4_product(Lowering& lowering,
                        const Product& product,
                        const Int4Matrix& matrix,
                        Int4Rows rows = Int4Rows::kAsAsked);

// The product of packed weights, where the kernel takes it; says whether it was built.
bool lower_packed_product(Lowering& lowering, const Product& product);

}  // namespace tenon::onednn
