// SPDX-License-Identifier: Apache-2.0
#pragma once
// A convolution's weight as a sum of `rank` outer products (Lebedev et al., "Speeding-up
// convolutional neural networks using fine-tuned CP-decomposition", ICLR 2015): W[o, i, y, x] ~ sum
// over r of out[o, r] in[i, r] rows[y, r] columns[x, r], by alternating least squares with a small
// ridge. Components may grow without bound and cancel each other (Phan et al., ECCV 2020):
// `cancellation` shows it, and such a result is not to be used.

#include "algorithms/kernel.hpp"

namespace tenon::decomposer {

struct Cp {
  Matrix out, in;        // [n_out, rank], [n_in, rank]
  Matrix rows, columns;  // [height, rank], [width, rank]
  double error = 0;      // relative to the norm of the weight
  // Squared norm of all components over that of the weight: about 1 when they do not cancel.
  double cancellation = 0;
  int64_t iterations = 0;
};

struct AlsLimits {
  int64_t iterations = 50;
  double tolerance = 1e-5;  // stops when the error falls by less
};
// start: factors of the wanted rank, not zero; `out` is found first. window = height * width.
Cp cp(const Kernel& weight, Cp start, const AlsLimits& limits);

}  // namespace tenon::decomposer
