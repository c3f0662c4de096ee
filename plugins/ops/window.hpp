// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sliding windows of convolutions and pools: sizes, padding rules, and coordinates. Kernels see
// three spatial axes; missing leading ones have size 1.

#include <array>

#include "dims.hpp"

namespace tenon::ops {

inline constexpr size_t kMaxSpatial = 3;

struct Window {
  using Sizes = std::array<int64_t, kMaxSpatial>;
  Sizes in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  Sizes pad_begin{0, 0, 0}, pad_end{0, 0, 0};
  size_t rank = 0;

  int64_t in_count() const { return in[0] * in[1] * in[2]; }
  int64_t out_count() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_count() const { return kernel[0] * kernel[1] * kernel[2]; }
  // Where the kernel's tap k meets the input for output o; outside 0..in-1: padding.
  int64_t position(size_t axis, int64_t o, int64_t k) const {
    return o * stride[axis] - pad_begin[axis] + k * dilation[axis];
  }
  std::vector<int64_t> out_shape() const { return {out.end() - int64_t(rank), out.end()}; }
};

// The window of a node with attributes strides, dilations, pads, auto_pad and ceil_mode over
// these spatial sizes.
Result<Window> window_of(Node node,
                         std::span<const int64_t> spatial,
                         std::span<const int64_t> kernel);
// The same for inference: spatial output sizes.
Result<Dims> window_dims(Node node, const Dims& spatial, const Dims& kernel);

// Refuses a window all of whose taps lie in the padding: it has no largest number and no mean. ONNX
// Runtime refuses padding as wide as the kernel for the same reason.
Status expect_taps_inside(const Window& window);
// The same for inference, where sizes are known.
Status expect_taps_inside(Node node, const Dims& spatial, const Dims& kernel);

// For gradients: refuses dy whose spatial sizes are not those of the window's output. Lists that
// are not all known agree with everything.
Status expect_window(Node node, const Dims& spatial, const Dims& kernel, const Dims& dy);

// For gradients of pools: input 0 has the sizes of the pool's result of x.
Status expect_pool_of(Node node, const Dims& x);

// Attributes that all windows have, as JSON without brackets.
#define TENON_WINDOW_ATTRIBUTES                                                \
  R"({"name": "auto_pad", "type": "string", "default": "NOTSET"},)"            \
  R"({"name": "dilations", "type": "ints"},{"name": "pads", "type": "ints"},)" \
  R"({"name": "strides", "type": "ints"})"

}  // namespace tenon::ops
