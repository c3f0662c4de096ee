// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lowering/lowering.hpp"

namespace tenon::onednn {

// A Cast or CastLike one of whose ends is of a type that only kernels/narrow.h reads.
bool is_narrow_cast(const Graph& graph, const Node& node);
void lower_narrow_cast(Lowering& lowering, int index);

}  // namespace tenon::onednn
