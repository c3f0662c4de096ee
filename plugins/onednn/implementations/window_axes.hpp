// SPDX-License-Identifier: Apache-2.0
#pragma once
// A window over one to three spatial axes as one over three, of which the first have one pixel.

#include <array>
#include <cstddef>
#include <cstdint>

#include "conv_geometry.hpp"

namespace tenon::onednn {

struct WindowAxes {
  static constexpr size_t kAxes = 3;
  using Sizes = std::array<int64_t, kAxes>;

  Sizes in{1, 1, 1};
  Sizes out{1, 1, 1};
  Sizes kernel{1, 1, 1};
  Sizes stride{1, 1, 1};
  Sizes step{1, 1, 1};  // from tap to tap
  Sizes pad{};

  WindowAxes() = default;
  // from, to: complete dims.
  WindowAxes(const Window& window, const Dims& from, const Dims& to) {
    const size_t n_axes = from.size() - 2;
    for (size_t i = 0; i < n_axes; ++i) {
      const size_t axis = kAxes - n_axes + i;
      in[axis] = from[i + 2];
      out[axis] = to[i + 2];
      kernel[axis] = window.kernel[i];
      stride[axis] = window.strides[i];
      step[axis] = window.dilates[i] + 1;
      pad[axis] = window.pad_begin[i];
    }
  }
  int64_t in_count() const { return in[0] * in[1] * in[2]; }
  int64_t out_count() const { return out[0] * out[1] * out[2]; }
  int64_t n_taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

}  // namespace tenon::onednn
