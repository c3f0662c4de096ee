// SPDX-License-Identifier: Apache-2.0
#pragma once
// Neighbouring pointwise steps that do not need each other become one step, whose elements are cut
// between the threads at once. So an optimizer's update is one step over all parameters, whatever
// its expression.

#include "plan.hpp"

namespace tenon::onednn {

void join_steps(Plan& plan);

}  // namespace tenon::onednn
