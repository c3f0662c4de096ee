// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights in f32 into the layout that oneDNN's kernels for products and convolutions read:
// [out / block, spatial, in / pair, block, pair], a pair being one number in f32 and two in bf16;
// zeros where a last block or pair is not full.
// oneDNN's own reorder moves one number after the other between most orders; where outputs or
// inputs are neighbours in memory this one goes by registers.

#include "context.h"

namespace tenon::onednn::kernels {

constexpr int64_t kMostPackBlock = 64;

struct PackArgs {
  const float* src = nullptr;
  void* dst = nullptr;
  ElementType type = ElementType::kF32;  // of dst: kF32 or kBf16
  int64_t out = 16;
  int64_t block = 16;  // outputs of a block: at most kMostPackBlock
  int64_t spatial = 1;
  int64_t in = 1;
  int64_t padded_in = 1;  // of dst: a multiple of the pair
  // In elements of f32; one of src_out and src_in is 1.
  int64_t src_out = 1;
  int64_t src_in = 1;
  int64_t src_spatial = 1;
  // In elements of dst.
  int64_t dst_block = 1;
  int64_t dst_spatial = 1;

  int64_t blocks() const { return (out + block - 1) / block; }
};

void pack(const Context& context, const PackArgs& args);

}  // namespace tenon::onednn::kernels
