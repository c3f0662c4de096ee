// SPDX-License-Identifier: Apache-2.0
#pragma once
// Maxima of windows of 8-bit images, channels-last; what lies outside of the image does not count,
// and every window has a pixel inside of it. No alignment is required.

#include "context.h"
#include "max_pool_args.h"

namespace tenon::onednn::kernels {

void max_pool(const Context& context, const MaxPoolArgs& args);

}  // namespace tenon::onednn::kernels
