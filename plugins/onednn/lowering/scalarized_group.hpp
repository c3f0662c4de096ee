// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pointwise nodes over small tensors, with the moves, sums and products of such tensors between
// them, as one step in which each element of a tensor is a scalar of its own. A step of a plan
// takes as long to begin as some ten numbers take to be computed.
//
// Before: u = Mul(x[1], 10), v = Sub(x[0], x[2]), y = Concat(u, v), z = Add(y, w)
// After:  one step that reads x[0], x[1], x[2], w[0], w[1] and writes z[0], z[1]
//
// Needs: values of at most nine elements, f32 or bool; a Concat, Expand, reduction or product among
// the nodes, which would be a step of its own; machine code for all of it.

#include <functional>

#include "lowering.hpp"

namespace tenon::onednn {

// What adds the step of such a group that begins with the pointwise node; empty: it begins none
// that is worth it.
std::function<void()> find_scalarized_group(Lowering& lowering, int first);

}  // namespace tenon::onednn
