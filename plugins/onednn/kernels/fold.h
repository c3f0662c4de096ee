// SPDX-License-Identifier: Apache-2.0
#pragma once
// The numbers under each position of a sliding window, added where the positions overlap (col2im):
// dst[.., t] = bias + sum of columns[.., w, f] over all w and f with
// f * stride + w * dilation - padding = t, along each of three axes. What no window reaches is the
// bias. Sums in f32, in the order of w. dst overlaps nothing that is read.

#include "context.h"
#include "fold_args.h"

namespace tenon::onednn::kernels {

void fold(const Context& context, const FoldArgs& args);

}  // namespace tenon::onednn::kernels
