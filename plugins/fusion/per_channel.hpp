// SPDX-License-Identifier: Apache-2.0
#pragma once
// Folding y*scale + shift, one pair per output channel, into the operator that makes y: Conv,
// ConvTranspose or Gemm with constant weights, BatchNormalization for inference, or a Concat of
// such nodes along their channels.

#include <vector>

#include "rewriter.hpp"

namespace tenon::fusion {

struct Affine {  // [n_channels] both
  std::vector<double> scale, shift;
};

// How many output channels the node has, when its weights and bias are constants that can be
// scaled (f32, f64) and nothing but one node uses its result; else -1. Of a Concat all branches.
int64_t scalable_channels(Node producer);

// Puts the node that makes y*scale + shift in the place of root.
Result<bool> scale_channels(Rewriter& rewriter, Node root, Node producer, const Affine& affine);

}  // namespace tenon::fusion
