// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the passes of loss scaling share: names, and nodes with types spelled out.

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/pass.hpp"

namespace tenon::precision {

inline constexpr std::string_view kScale = "loss_scale/scale";             // state, f32 []
inline constexpr std::string_view kTracker = "loss_scale/growth_tracker";  // state, i32 []
inline constexpr std::string_view kHysteresis = "loss_scale/hysteresis";   // state, i32 []
inline constexpr std::string_view kCurrent = "loss_scale/current";         // value, f32 []
inline constexpr std::string_view kScaledLoss = "scaled_loss";             // output
inline constexpr std::string_view kFoundInf = "found_inf";                 // output, bool []
// Output, f64 [5]: numbers that are not 0, above 2^-25, from 2^-14, from 65520; the largest.
inline constexpr std::string_view kHistogram = "gradient_histogram";
inline constexpr std::string_view kUnscaledNote = "unscaled";  // on gradients that were divided

// How a scale begins and moves. Sources: PyTorch's torch.amp.GradScaler; Apex' amp LossScaler;
// DeepSpeed's DynamicLossScaler (deepspeed/runtime/fp16/loss_scaler.py).
struct Scaler {
  std::string_view name = "torch";
  double init = 65536, growth = 2, backoff = 0.5;
  int64_t interval = 2000;
  double lowest = 0, highest = std::numeric_limits<double>::infinity();
  int64_t hysteresis = 1;    // overflows since it last grew that are let pass, and one, lower it
  bool consecutive = false;  // each good step renews them, not only one that the scale grows at
  // What states begin with that goes on from a state of the library: 0 is none.
  int32_t tracker = 0, hysteresis_left = 0;
};

// Of the option preset, the library's own `config` and `state` behind it, and what other options
// say in their place.
Result<Scaler> scaler_of(const Options& options);

// clang-format off
#define PRECISION_SCALER_OPTIONS \
  R"("preset": {"type": "string", "enum": ["torch", "apex", "deepspeed"], "default": "torch", )" \
  R"("description": "preset: initial scale, factors and interval as that library has them"}, )" \
  R"("config": {"type": "object", "description": "the section fp16 of a DeepSpeed configuration, )" \
  R"(or loss_scale, min_loss_scale and max_loss_scale of apex.amp.initialize"}, )" \
  R"("state": {"type": "object", "description": "goes on from the preset's own state: )" \
  R"(GradScaler.state_dict(), apex.amp.state_dict(), or vars() of DeepSpeed's DynamicLossScaler"})"
// clang-format on

struct Nodes {
  EditView edit;

  Result<Value> cast(Value v, uint32_t dtype) const {
    return edit.op("Cast", {v}, {{"to", any_dtype(dtype)}});
  }
  Result<Value> number(double x) const { return edit.constant<double>(TN_F64, {}, {x}); }
  Result<Value> count(int32_t x) const { return edit.constant<int32_t>(TN_I32, {}, {x}); }
};

}  // namespace tenon::precision
