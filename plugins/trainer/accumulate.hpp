// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names that the two passes of gradient accumulation share, and the loop that feeds them.

#include <string_view>

namespace tenon::trainer {

inline constexpr std::string_view kAccumulatedUpdate = "accumulated/update";  // input, f32 []
inline constexpr std::string_view kAccumulatedWeight = "accumulated/weight";  // state, f32 []
inline constexpr std::string_view kAccumulatedHeld = "accumulated/held";      // value, bool []
inline constexpr std::string_view kAccumulatedNote = "accumulated";  // on gradients of a window

}  // namespace tenon::trainer
