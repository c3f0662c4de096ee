// SPDX-License-Identifier: Apache-2.0
#pragma once
// BatchNormalization over the batch's own statistics and its gradient by this backend's kernels.

#include "handlers.hpp"

namespace tenon::onednn {

// oneDNN has no vector code for channels that fill no whole registers: with 24 of them it takes 30
// times as long as with 32.
bool takes_own_batch_norm(const View& x);

// Places of rows of f32, one number for each channel.
struct BatchNormRows {
  Place scale, shift, mean, variance;
  Place affine;  // two rows: the factor and the summand of x
};
void add_own_batch_norm(Lowering& lowering,
                        const Node& node,
                        bool with_relu,
                        const View& x,
                        const View& y,
                        const BatchNormRows& rows);
// has_statistics: the forward step has left mean, variance and affine; else mean and variance are
// written.
struct BatchNormGradPlaces {
  View x, dy, dx;
  BatchNormRows rows;
  Place dscale, dshift;
  bool has_statistics = true;
};
void add_own_batch_norm_grad(Lowering& lowering,
                             const Node& node,
                             bool with_relu,
                             const BatchNormGradPlaces& places);

}  // namespace tenon::onednn
