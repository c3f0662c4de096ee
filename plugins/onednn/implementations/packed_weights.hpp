// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights of convolutions and products, as graphs have them and as primitives want them.

#include "lowering/lowering.hpp"

namespace tenon::onednn {

// Of a convolution: [o, i / g, spatial] with the groups in front, as oneDNN counts axes: [g, o / g,
// i / g, spatial].
View in_groups(View weights, int64_t groups);

// Where a primitive finds them as it wants them: constants are packed while the plan is made,
// others whenever the plan runs. weights: with the axes of `wanted`, so in_groups or a matrix.
Place packed_weights(Lowering& lowering,
                     const std::string& name,
                     const View& weights,
                     const dnnl::memory::desc& wanted,
                     int64_t groups);

}  // namespace tenon::onednn
