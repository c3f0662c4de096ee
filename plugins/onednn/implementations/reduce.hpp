// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step of a reduction, which a global pool is too.

#include "kernels/reduce.h"
#include "lowering/plan.hpp"
#include "lowering/view.hpp"

namespace tenon::onednn {

// args: but for the addresses, which are those of src and dst when it runs.
Step reduce_step(const std::string& name,
                 const kernels::ReduceArgs& args,
                 const View& src,
                 const View& dst);

}  // namespace tenon::onednn
