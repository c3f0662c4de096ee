// SPDX-License-Identifier: Apache-2.0
// The level's dispatch table.

#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

extern const KernelTable kTable;
const KernelTable kTable = {
#define TENON_KERNEL(name, arguments) .name = &name,
#include "../kernel_table.def"
#undef TENON_KERNEL
};

}  // namespace tenon::onednn::kernels::TENON_LEVEL
