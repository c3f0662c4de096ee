// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a product of quantized values takes along of what follows it: all of an epilogue, or only
// the bias.

#include <limits>
#include <vector>

#include "int8_product.hpp"

namespace tenon::onednn {

// What an epilogue op combines sums with, and how it is read.
struct GemmOperand {
  int value = kNone;  // kNone: the op has none
  View view = {};
  bool is_read = false;  // brought into the view's strides first; else it lies so
};
// What the kernel takes of an epilogue.
struct GemmEpilogue {
  Epilogue epilogue;
  float low = -std::numeric_limits<float>::infinity();  // in units
  float high = std::numeric_limits<float>::infinity();
  double unit = 1;  // of scales, bias and bounds: the result's scale, or 1 where there are ops
  std::vector<kernels::EpilogueOp> ops = {};
  std::vector<GemmOperand> others = {};  // by op
};
// [groups, padded] f32: what sums are multiplied with, and what is added; zeros behind the columns.
struct EpilogueRows {
  View scales;
  View bias;
};
EpilogueRows epilogue_rows(Lowering& lowering,
                           const GemmStep& step,
                           const GemmEpilogue& finish,
                           int64_t padded);
// GELU and a factor behind it as one cheaper operation, where the result's steps are coarse.
void shorten_gelu(std::vector<kernels::EpilogueOp>& ops, const kernels::Target& dst);

GemmEpilogue finish_of(const Lowering& lowering, const GemmStep& step, const Epilogue& epilogue);
// Where the others lie, by op; may add steps that bring them into the result's layout.
std::vector<Place> bind(Lowering& lowering, const GemmEpilogue& finish);

}  // namespace tenon::onednn
