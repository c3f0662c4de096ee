// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the quantized values of a source and of weights mean, as oneDNN wants it: that there are
// scales and zero points is said in a primitive's description, the numbers it reads when it runs.

#include "lowering/lowering.hpp"

namespace tenon::onednn {

// One, or one for each index of an axis.
std::vector<float> scales_of(const View& weights);
// weights_mask: the axes, as bits, whose indices have a scale each.
void describe_scales(const kernels::Quant& src,
                     const kernels::Quant& weights,
                     int weights_mask,
                     dnnl::primitive_attr* attr);
void bind_scales(Lowering& lowering,
                 const kernels::Quant& src,
                 const kernels::Quant& weights,
                 const std::vector<float>& weights_scales,
                 std::vector<Argument>* arguments);

}  // namespace tenon::onednn
