// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a product of codes takes along of what follows it: all of a tail, or only the bias.

#include <limits>
#include <vector>

#include "code_product.hpp"

namespace tenon::onednn {

// What the kernel takes of a tail.
struct CodeFinish {
  Tail tail;
  float low = -std::numeric_limits<float>::infinity();  // in units
  float high = std::numeric_limits<float>::infinity();
  double unit = 1;  // of scales, bias and bounds: the result's scale, or 1 where there are ops
  std::vector<kernels::CodeTailOp> ops = {};
  std::vector<View> others = {};  // of the ops that have one; else none
};
// May add steps that bring an operand into the result's layout.
CodeFinish finish_of(Lowering& lowering, const CodeStep& step, const Tail& tail);

}  // namespace tenon::onednn
