// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of a step as its inputs, by name.

#include <string>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::trainer {

// Each name becomes the scalar input `setting/NAME`, in this order, behind the inputs that are
// there: float64 where a number that it stands for is, else float32. It stands for constants that
// are marked with the name (tenon/sdk/setting.hpp), and for the scalar constant that is called so.
// Done twice: before the gradient, whose rules copy numbers, with what an update brings still
// missing; and behind the update, where none may be.
Status drive(tn_graph* graph, const std::vector<std::string>& names, bool may_miss);

}  // namespace tenon::trainer
