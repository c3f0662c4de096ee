// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers of the host's generator (tenon/host/random.h): Philox4x32-10 (Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011), where the counter is {block, stream} and
// the key is the seed. A block of four words makes two numbers of 53 bits. What comes of them is
// computed in f64 and rounded to f32.

#include "context.h"
#include "draws_args.h"

namespace tenon::onednn::kernels {

// Numbers 0..n of the stream: uniform in [0, 1). Those that would be rounded to 1 become the
// largest number below it; the others are the host's, rounded.
void draw_uniform(const Context& context, const Draws& draws, float* out, int64_t n);
// Of mean 0 and variance 1, by Box and Muller, within some 1e-15 of the host's before rounding.
void draw_normal(const Context& context, const Draws& draws, float* out, int64_t n);

}  // namespace tenon::onednn::kernels
