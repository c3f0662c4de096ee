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
// DeepSpeed's DynamicLossScaler as its fused optimizer has it.
struct Scaler {
  std::string_view name = "torch";
  double init = 65536, growth = 2, backoff = 0.5;
  int64_t interval = 2000;
  double lowest = 0, highest = std::numeric_limits<double>::infinity();
  int64_t hysteresis = 1;  // overflows since it last grew that are let pass, and one, lower it
};
inline constexpr Scaler kScalers[] = {
    {},
    {.name = "apex", .highest = 16777216},
    {.name = "deepspeed", .init = 4294967296, .interval = 1000, .lowest = 1, .hysteresis = 2},
};

// Of option preset, with what other options say in its place.
inline Scaler scaler_of(const Options& options) {
  Scaler out;
  for (const Scaler& one : kScalers)
    if (options.text("preset", "torch") == one.name) out = one;
  auto number = [&](const char* key, double& to) {
    if (options.has(key)) to = options.number(key);
  };
  auto count = [&](const char* key, int64_t& to) {
    if (options.has(key)) to = options.integer(key);
  };
  number("init_scale", out.init);
  number("growth_factor", out.growth);
  number("backoff_factor", out.backoff);
  count("growth_interval", out.interval);
  number("min_scale", out.lowest);
  number("max_scale", out.highest);
  count("hysteresis", out.hysteresis);
  return out;
}
#define PRECISION_PRESET_OPTION                                                                 \
  R"("preset": {"type": "string", "enum": ["torch", "apex", "deepspeed"], "default": "torch",)" \
  R"("description": "preset: initial scale, factors and interval as that library has them"})"

struct Nodes {
  EditView edit;

  Result<Value> cast(Value v, uint32_t dtype) const {
    return edit.op("Cast", {v}, {{"to", any_dtype(dtype)}});
  }
  Result<Value> number(double x) const { return edit.constant<double>(TN_F64, {}, {x}); }
  Result<Value> count(int32_t x) const { return edit.constant<int32_t>(TN_I32, {}, {x}); }
};

}  // namespace tenon::precision
