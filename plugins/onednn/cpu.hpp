// SPDX-License-Identifier: Apache-2.0
#pragma once
// What this CPU's instructions allow, as oneDNN sees them: ONEDNN_MAX_CPU_ISA holds here too, so
// that one machine can stand for a lesser one.

#include <string>

#include "kernels/types.h"

namespace tenon::onednn {

// The level that our own kernels run at.
kernels::Level best_level();

// Whether oneDNN's sums of 8-bit products are exact, as they are with VNNI. Without it they are
// added in 16 bits, two at a time, which saturate; products of quantized values then are our own
// kernel's (kernels/int8_product.h) or real ones.
bool adds_int8_exactly();

// Whether products run in our kernel for AMX tiles (kernels/tile_product.h).
bool computes_in_tiles();

// Whether oneDNN has primitives for bf16 (AVX-512 or more). Without them `precision=bf16` keeps
// floating-point numbers in f32.
bool computes_in_bf16();
// For people: why it does not; empty where it does.
std::string why_not_bf16();

}  // namespace tenon::onednn
