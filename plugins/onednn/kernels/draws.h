// SPDX-License-Identifier: Apache-2.0
#pragma once
// Uniform numbers in [0, 1) of the host's generator (tenon/host/random.h), the same to the bit:
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), where the
// counter is {block, stream} and the key is the seed. A block of four words makes two numbers of 53
// bits; low + scale times that is computed in f64 and rounded to f32, so that the largest become 1.

#include "context.h"
#include "draws_args.h"

namespace tenon::onednn::kernels {

// Numbers 0..n of the stream.
void draw_uniform(const Context& context, const Uniform& of, float* out, int64_t n);

}  // namespace tenon::onednn::kernels
