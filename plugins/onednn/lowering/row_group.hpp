// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pointwise nodes, reductions of what they make over the last axes, and pointwise nodes that read
// both, as one pass over memory: it goes by blocks of rows, and what lies between stays in cache.
//
// Before: m = Mul(y, d), s = ReduceSum(m, -1), r = Sub(d, s), dx = Mul(y, r)   (Softmax's gradient)
// After:  one step that reads y and d and writes dx
// Before: d = Sub(x, y), q = Mul(d, d), loss = ReduceMean(q)
// After:  one step that reads x and y and writes one number
//
// Needs: f32 or bf16 in row-major order; where rows are read again, at least 16 of at most 4096
// elements, and a reduction that keeps its axes.

#include <functional>

#include "lowering.hpp"

namespace tenon::onednn {

// What adds the step of such a chain that begins with the node; empty: it begins none.
std::function<void()> find_row_group(Lowering& lowering, int first);

}  // namespace tenon::onednn
