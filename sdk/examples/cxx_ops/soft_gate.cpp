// SPDX-License-Identifier: Apache-2.0
// An operator that is its expression and nothing else: shapes, kernel, gradient, vmap, fused loops
// and the int8 table follow from it.
#include "tenon/sdk/role/op.hpp"

namespace {

constexpr tn_op kSoftGate = tenon::op_row({.type = "SoftGate",
                                           .domain = "com.example",
                                           .traits = TN_OP_POINTWISE,
                                           .axes = "*",
                                           .expr = "x * tanh(log1p(exp(-abs(x))) + max(x, 0))",
                                           .quant = "table"});

}  // namespace

TENON_OPS(soft_gate, &kSoftGate)
