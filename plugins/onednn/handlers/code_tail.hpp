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
  std::vector<kernels::EpilogueOp> ops = {};
  std::vector<View> others = {};  // of the ops that have one; else none
};
// [groups, padded] f32: what sums are multiplied with, and what is added; zeros behind the columns.
struct EpilogueRows {
  View scales;
  View bias;
};
EpilogueRows epilogue_rows(Lowering& lowering,
                           const CodeStep& step,
                           const CodeFinish& finish,
                           int64_t padded);
// GELU and a factor behind it as one cheaper operation, where the result's steps are coarse.
void shorten_gelu(std::vector<kernels::EpilogueOp>& ops, const kernels::Target& dst);

// May add steps that bring an operand into the result's layout.
CodeFinish finish_of(Lowering& lowering, const CodeStep& step, const Tail& tail);

}  // namespace tenon::onednn
