// SPDX-License-Identifier: Apache-2.0
// A good operator row and one that does not parse: the host must keep neither.
#include "tenon/sdk/role/op.hpp"

namespace {

constexpr tn_op kHalf =
    tenon::op_row({.type = "Half", .domain = "test", .traits = TN_OP_POINTWISE, .expr = "0.5 * x"});
constexpr tn_op kWrong =
    tenon::op_row({.type = "Wrong", .domain = "test", .traits = TN_OP_POINTWISE, .expr = "0.5 *"});

}  // namespace

TENON_OPS(half_rows, &kHalf, &kWrong)
