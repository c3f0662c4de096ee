// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the passes of loss scaling share: names, and nodes with types spelled out.

#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::precision {

inline constexpr std::string_view kScale = "loss_scale/scale";             // state, f32 []
inline constexpr std::string_view kTracker = "loss_scale/growth_tracker";  // state, i32 []
inline constexpr std::string_view kCurrent = "loss_scale/current";         // value, f32 []
inline constexpr std::string_view kScaledLoss = "scaled_loss";             // output
inline constexpr std::string_view kFoundInf = "found_inf";                 // output, bool []
inline constexpr std::string_view kUnscaledNote = "unscaled";  // on gradients that were divided

struct Nodes {
  EditView edit;

  Result<Value> cast(Value v, uint32_t dtype) const {
    return edit.op("Cast", {v}, {{"to", any_dtype(dtype)}});
  }
  Result<Value> number(double x) const { return edit.constant<double>(TN_F64, {}, {x}); }
  Result<Value> count(int32_t x) const { return edit.constant<int32_t>(TN_I32, {}, {x}); }
};

}  // namespace tenon::precision
