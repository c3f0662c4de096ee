// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gradient of the weights of a convolution with one filter for each channel, on channels-last
// images in f32 or bf16: dw[c, t] is the sum over all places of dy[place, c] times the pixel that
// tap t sees there. Sums are of f32, of 16 pieces of the rows of dy, so that results do not depend
// on the number of threads.

#include "context.h"
#include "depthwise_grad_args.h"

namespace tenon::onednn::kernels {

int64_t depthwise_grad_scratch_bytes(const DepthwiseGradArgs& args);
void depthwise_grad(const Context& context, const DepthwiseGradArgs& args, void* scratch);

}  // namespace tenon::onednn::kernels
