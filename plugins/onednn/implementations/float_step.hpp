// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step of a product of f32 numbers: on vectors (kernels/float_product.h) or on AMX tiles
// (kernels/bf16x6_product.h). Constant weights are in panels, which both share; tiles also take a
// computed right operand, where it lies.

#include <optional>

#include "gemm_epilogue.hpp"
#include "kernels/bf16x6_product_args.h"
#include "product.hpp"

namespace tenon::onednn {

enum class FloatKernel : uint8_t { kVectors, kTiles };

// A product but for its source. Without `right` its right operand is the weights of the step.
struct FloatStep {
  GemmStep step = {};
  GemmEpilogue taken = {};  // of the epilogue
  std::optional<View> right = {};
  kernels::SplitRight right_order = {};  // how that lies
  int64_t left_stride = 0;               // elements between rows, or between columns:
  bool is_left_transposed = false;
};

// Why no kernel of f32 products takes the weights.
std::string why_not_floats(const Lowering& lowering, const View& weights);
// Why neither kernel computes a product with constant weights, or the step.
std::string find_float_step(const ProductSite& site, FloatStep* found);

// Whether tiles multiply f32 numbers faster than vectors: in 200 shapes 1.29 times where this
// holds, least 0.94; 0.9 times elsewhere (onednn/convolutions.py split).
bool is_faster_on_tiles(const Lowering& lowering, int64_t m, int64_t n, int64_t k);

void build_float_step(Lowering& lowering, FloatStep made, FloatKernel kernel);

}  // namespace tenon::onednn
