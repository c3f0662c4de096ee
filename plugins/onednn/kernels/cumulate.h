// SPDX-License-Identifier: Apache-2.0
#pragma once
// Running sums or products of f32 along one axis, in f64 and in order. dst may be src, and overlaps
// it in no other way.

#include "context.h"
#include "cumulate_args.h"

namespace tenon::onednn::kernels {

void cumulate(const Context& context, const CumulateArgs& args);

}  // namespace tenon::onednn::kernels
