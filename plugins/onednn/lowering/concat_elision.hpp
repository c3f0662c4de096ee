// SPDX-License-Identifier: Apache-2.0
#pragma once
// A Concat whose inputs lie end to end in its result copies nothing where each of them was made for
// it alone: the steps that make them write to their places in the result.

#include "plan.hpp"

namespace tenon::onednn {

void elide_concats(Plan& plan);

}  // namespace tenon::onednn
