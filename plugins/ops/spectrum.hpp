// SPDX-License-Identifier: Apache-2.0
#pragma once
// What DFT and STFT share: complex signals, and what a DFT node asks for. Complex numbers of
// tensors are pairs along the last axis.

#include <complex>
#include <vector>

#include "tenon/sdk/build.hpp"

namespace tenon::ops {

using Complex = std::complex<double>;
using Signal = std::vector<Complex>;

// exp(sign * 2 pi i k / n)
Complex turn(double sign, int64_t k, int64_t n);

// The discrete Fourier transform, not scaled; sign: -1 forward, 1 back.
Signal transform(const Signal& x, double sign);

struct Dft {
  bool inverse, onesided;
  // How many numbers come out of a signal of n, and in how many components.
  int64_t bins(int64_t n) const { return onesided && !inverse ? n / 2 + 1 : n; }
  int64_t components() const { return onesided && inverse ? 1 : 2; }
  bool from_half() const { return onesided && inverse; }  // a real signal's spectrum comes in
  double sign() const { return inverse ? 1 : -1; }
};
Dft dft_of(Node node);

// Products with constant matrices; not of fewer than all sizes.
Result<std::vector<Value>> dft_decompose(EditView edit, Node node);

}  // namespace tenon::ops
