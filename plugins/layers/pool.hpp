// SPDX-License-Identifier: Apache-2.0
#pragma once
// The windows of pooling layers: what their options say, and what they are for an input.
#include "layer.hpp"

namespace tenon::layers {

// The properties of a pooling layer's schema; "window" is required.
// clang-format off
#define TENON_POOL_OPTIONS                                                                     \
  R"({"required": ["window"], "properties": {)"                                                \
  R"("window": {)" TENON_SIZES("1")                                                            \
  R"(, "description": "window size: a number, or one for each axis"},)"                           \
  R"("stride": {)" TENON_SIZES("1")                                                            \
  R"(, "description": "stride; default: the window size"},)"                        \
  R"("padding": {)" TENON_SIZES("0")                                                           \
  R"(, "default": 0, "description": "padding of the input"}}})"
// clang-format on

// As a pooling operator takes them: one number for each axis behind batch and channels; pads before
// and after.
struct Windows {
  std::vector<int64_t> window, stride, pads;
};

class PoolWindows {
 public:
  static PoolWindows from(const Options& options) {
    PoolWindows made;
    made.window_ = ints_of(options.get("window"));
    made.stride_ = options.has("stride") ? ints_of(options.get("stride")) : made.window_;
    made.padding_ = ints_of(options.get("padding"));
    return made;
  }

  // Of the layer's one input.
  Result<Windows> over(LayerUse& use) const {
    TN_TRY(type, one_input(use, 3, 5));
    size_t n_axes = type.rank() - 2;
    TN_TRY(window, per_axis(window_, n_axes, "window"));
    TN_TRY(stride, per_axis(stride_, n_axes, "stride"));
    TN_TRY(padding, per_axis(padding_, n_axes, "padding"));
    return Windows{window, stride, before_and_after(padding)};
  }

 private:
  std::vector<int64_t> window_, stride_, padding_;
};

}  // namespace tenon::layers
