// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of a step as its inputs, by name.

#include <string>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::trainer {

// Each name becomes the float32 scalar input `setting/NAME`, in this order, behind the inputs that
// are there. It stands for constants that are marked with the name (tenon/sdk/setting.hpp), and for
// the float32 scalar constant that is called so. Done twice: before the gradient, whose rules copy
// numbers, with what an update brings still missing; and behind the update, where none may be.
Status drive(tn_graph* graph, const std::vector<std::string>& names, bool may_miss);

}  // namespace tenon::trainer
