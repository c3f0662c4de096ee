// SPDX-License-Identifier: Apache-2.0
#pragma once
// Maxima of dilated windows in f32, channels-last, and their gradient. oneDNN has only its plain
// loops for these.

#include "conv_geometry.hpp"
#include "lowering/lowering.hpp"

namespace tenon::onednn {

bool is_dilated(const Window& window);
// New memory for the taps of so many maxima.
Place taps_of(Lowering& lowering, const Dims& dst);
// taps: nullptr, or the memory that gets which tap of its window each maximum is.
void add_dilated_max(Lowering& lowering,
                     const std::string& name,
                     const Window& window,
                     const View& src,
                     const View& dst,
                     const Place* taps);
void add_dilated_max_grad(Lowering& lowering,
                          const std::string& name,
                          const Window& window,
                          const View& dy,
                          const View& dx,
                          Place taps);

}  // namespace tenon::onednn
