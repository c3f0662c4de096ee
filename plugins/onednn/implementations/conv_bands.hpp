// SPDX-License-Identifier: Apache-2.0
#pragma once
// A convolution of oneDNN over bands of rows, a thread each. Where a source of few channels has a
// zero point, oneDNN 3.2 makes at most 32 channels of the result at once and gives threads
// different ones, so that all lines of the result are written by two cores in turn: an image of
// 224 x 224 to 64 channels by 3x3 with stride 2 took between 54 and 490 us on two threads of a
// Zen 5, and 106 on one. Bands share one line at a border at most, and all sums are as they
// were.

#include "conv_geometry.hpp"
#include "lowering/lowering.hpp"

namespace tenon::onednn {

struct BandedConv {
  std::string name;
  dnnl::convolution_forward::primitive_desc whole;
  dnnl::primitive_attr attr;  // that `whole` was described with
  Window window;
  std::vector<Argument> arguments;  // of the whole
  double flops = 0;
};

// Adds the step and says true, or adds nothing.
bool add_bands(Lowering& lowering, const BandedConv& conv);

}  // namespace tenon::onednn
