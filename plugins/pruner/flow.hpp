// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::pruner {

// A need beside those of tenon/role/importance.h and the SDK's: gradients of the flow in the place
// of those of a loss, the sum of the first output of the network of absolute weights for inputs of
// ones. No data is needed.
inline constexpr uint32_t kImportanceFlow = 8;

}  // namespace tenon::pruner
