// SPDX-License-Identifier: Apache-2.0
// An operator of a third party: y = 2 x.
#include "tenon/sdk/role/op.hpp"

namespace {

constexpr tn_op kDouble =
    tenon::op_row({.type = "Double", .domain = "test", .traits = TN_OP_POINTWISE, .expr = "2 * x"});

}  // namespace

TENON_OPS(doubling, &kDouble)
