// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types that no other kernel reads: floating-point numbers of 8 and 4 bits, and integers of
// 4 and 2 bits, which are packed. To and from any type, as the operator Cast has it: by double, or
// exactly where both are integers.

#include "tenon/narrow.hpp"

#include "context.h"

namespace tenon::onednn::kernels {

// n elements, dense; from and to may be of any type. Neither overlaps the other.
void convert_elements(const Context& context,
                      ElementType from,
                      const void* source,
                      ElementType to,
                      void* target,
                      int64_t n,
                      const CastRule& rule = {});

}  // namespace tenon::onednn::kernels
