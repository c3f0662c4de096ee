// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step of a product of f32 numbers with constant weights in panels: on vectors
// (kernels/float_product.h) or on AMX tiles (kernels/bf16x6_product.h), which share what is packed.

#include "gemm_epilogue.hpp"
#include "product.hpp"

namespace tenon::onednn {

enum class FloatKernel : uint8_t { kVectors, kTiles };

// A product but for its source.
struct FloatStep {
  GemmStep step = {};
  GemmEpilogue finish = {};
};

// Why no kernel of f32 products takes the weights.
std::string why_not_floats(const Lowering& lowering, const View& weights);
// Why neither kernel computes a product, or the step.
std::string find_float_step(const ProductSite& site, FloatStep* found);

// Whether tiles multiply f32 numbers faster than vectors: in 200 shapes 1.29 times where this
// holds, least 0.94; 0.9 times elsewhere (onednn/convolutions.py split).
bool is_faster_on_tiles(const Lowering& lowering, int64_t m, int64_t n, int64_t k);

void build_float_step(Lowering& lowering, FloatStep made, FloatKernel kernel);

}  // namespace tenon::onednn
