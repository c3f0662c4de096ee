// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names that the two passes of loss scaling share.

#include <string_view>

namespace tenon::precision {

inline constexpr std::string_view kScale = "loss_scale/scale";             // state, f32 []
inline constexpr std::string_view kTracker = "loss_scale/growth_tracker";  // state, i32 []
inline constexpr std::string_view kCurrent = "loss_scale/current";         // value, f32 []
inline constexpr std::string_view kScaledLoss = "scaled_loss";             // output
inline constexpr std::string_view kFoundInf = "found_inf";                 // output, bool []

}  // namespace tenon::precision
