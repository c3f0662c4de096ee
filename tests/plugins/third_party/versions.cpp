// SPDX-License-Identifier: Apache-2.0
// An operator that has changed its meaning: 2 x, and 3 x from version 4 on.
#include "tenon/sdk/role/op.hpp"

namespace {

constexpr tn_op kFirst = tenon::op_row(
    {.type = "Grow", .since = 2, .domain = "acme", .traits = TN_OP_POINTWISE, .expr = "2 * x"});
constexpr tn_op kSecond = tenon::op_row(
    {.type = "Grow", .since = 4, .domain = "acme", .traits = TN_OP_POINTWISE, .expr = "3 * x"});

}  // namespace

TENON_OPS(versions, &kFirst, &kSecond)
