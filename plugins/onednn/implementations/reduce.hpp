// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step of a reduction, which a global pool is too.

#include "kernels/reduce.h"
#include "lowering/plan.hpp"

namespace tenon::onednn {

// Of a step whose places are the source and the target.
KernelFunction reduce_function(const kernels::ReduceArgs& args);

}  // namespace tenon::onednn
