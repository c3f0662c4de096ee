// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of quantized numbers: MatMul and Gemm whose operands DequantizeLinear makes of 8-bit
// numbers become a product of those, followed by a pointwise rescaling that joins what comes after.

#include "graph.hpp"
#include "lowering.hpp"

namespace tenon::cuda {

// `notes`: which such products stay as they are, and why.
Imported join_low_precision_gemms(const Imported& graph,
                                  const Target& target,
                                  std::vector<std::string>* notes);

}  // namespace tenon::cuda
