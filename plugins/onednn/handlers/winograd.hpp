// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions of 3x3 with stride 1 and their gradients by kernels/winograd.h. Each function takes
// its node where that is measured to be faster than oneDNN's sum, and says whether it did. Constant
// weights only with winograd=all: a trained model's answer is rounded as everybody rounds it.

#include "../lowering.hpp"

namespace tenon::onednn {

bool lower_winograd_conv(Lowering& lowering, int node);
bool lower_winograd_conv_transpose(Lowering& lowering, int node);
bool lower_winograd_weight_grad(Lowering& lowering, int node);

}  // namespace tenon::onednn
