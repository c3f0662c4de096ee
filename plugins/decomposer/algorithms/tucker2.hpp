// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tucker-2 of a convolution's weight (Kim et al., "Compression of deep convolutional neural
// networks for fast and low power mobile applications", ICLR 2016, section 3): W ~ core x_out U
// x_in V, with orthonormal U and V. They start as the leading singular vectors of the unfolded
// weight (HOSVD) and are improved in turns (HOOI; De Lathauwer, De Moor and Vandewalle, SIAM J.
// Matrix Anal. Appl. 21(4), 2000).

#include "algorithms/spectrum.hpp"

namespace tenon::decomposer {

struct Tucker2 {
  Matrix out;        // U: [n_out, rank_out]
  Matrix in;         // V: [n_in, rank_in]
  Kernel core;       // [rank_out, rank_in, window]
  double error = 0;  // relative to the norm of the weight
  int64_t iterations = 0;
};

struct Modes {
  Spectrum out, in;
};
Modes modes_of(const Kernel& weight);

struct HooiLimits {
  int64_t iterations = 10;  // 0: HOSVD alone
  double tolerance = 1e-4;  // stops when the error falls by less
};
// modes: of this weight. rank_out: from 1 to n_out, rank_in: from 1 to n_in.
Tucker2 tucker2(const Kernel& weight,
                const Modes& modes,
                int64_t rank_out,
                int64_t rank_in,
                const HooiLimits& limits);

}  // namespace tenon::decomposer
