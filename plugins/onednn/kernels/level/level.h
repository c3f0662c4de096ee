// SPDX-License-Identifier: Apache-2.0
#pragma once
// Declares every row of the dispatch table in the level's namespace, so that a definition with
// other arguments than its row fails to link.

#include "../kernel_table.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

#define TENON_KERNEL(name, arguments) void name arguments;
#include "../kernel_table.def"
#undef TENON_KERNEL

}  // namespace tenon::onednn::kernels::TENON_LEVEL
