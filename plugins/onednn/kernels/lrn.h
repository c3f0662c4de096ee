// SPDX-License-Identifier: Apache-2.0
#pragma once
// Local response normalization: x / (bias + alpha * sum of squares of `size` neighbouring
// channels)^beta; Krizhevsky, Sutskever and Hinton (2012), section 3.3. `size` is the channel's own
// and (size - 1) / 2 before it, the rest behind. dst must not overlap src.

#include "context.h"
#include "row_args.h"

namespace tenon::onednn::kernels {

void normalize_response(const Context& context, const LrnArgs& args);

}  // namespace tenon::onednn::kernels
