// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plain convolution under Conv, ConvInteger and QLinearConv: a block of output channels over a
// chunk of output rows at a time, so that each input line is read once per block.

#include <algorithm>

#include "tenon/wrapping.hpp"

#include "window.hpp"

namespace tenon::ops {

struct ConvSizes {
  Window window;
  int64_t batch = 0, groups = 1, in_channels = 0, out_channels = 0;  // channels per group
};

// Reads the sizes of a convolution of x by w and checks that they fit together.
Result<ConvSizes> conv_sizes(Node node, std::span<const int64_t> x, std::span<const int64_t> w);
std::vector<int64_t> conv_out_shape(const ConvSizes& sizes);
Status conv_shape(EditView edit, Node node, uint64_t weight_input, uint32_t out_dtype);
double conv_flops(Node node, uint64_t weight_input);
// The attributes that say which convolution it is, for another node.
std::vector<Attr> conv_attributes(Node node);
// Sums a gradient over all axes but the channels.
Value bias_gradient(Gradients& g, Value dy);

namespace detail {

inline constexpr int64_t kChannelBlock = 16;
inline constexpr int64_t kLine = 512;

// line[j] = x at tap (kd, kh, kw) of output j of rows begin..end; 0 in the padding.
template <class Acc, class LoadX>
void read_line(const Window& w,
               const Window::Sizes& tap,
               int64_t plane,
               int64_t begin,
               int64_t end,
               const LoadX& load_x,
               Acc* line) {
  for (int64_t row = begin; row < end; ++row) {
    int64_t d = w.position(0, row / w.out[1], tap[0]), h = w.position(1, row % w.out[1], tap[1]);
    bool inside = d >= 0 && d < w.in[0] && h >= 0 && h < w.in[1];
    int64_t at = plane + (d * w.in[1] + h) * w.in[2];
    for (int64_t j = 0; j < w.out[2]; ++j) {
      int64_t x = w.position(2, j, tap[2]);
      *line++ = inside && x >= 0 && x < w.in[2] ? load_x(at + x) : Acc(0);
    }
  }
}

template <class Acc>
void add_scaled(Acc* __restrict to, const Acc* __restrict from, Acc factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = wrapping_add(to[i], wrapping_mul(factor, from[i]));
}

}  // namespace detail

// load_x(index), load_w(index, out_channel): elements less their zero points. store(index,
// out_channel, sum). Channels count over all groups.
template <class Acc, class LoadX, class LoadW, class Store>
void convolve(
    tn_ctx* ctx, const ConvSizes& s, const LoadX& load_x, const LoadW& load_w, const Store& store) {
  const Window& w = s.window;
  int64_t rows = w.out[0] * w.out[1], taps = w.kernel_count();
  if (rows * w.out[2] == 0) return;
  int64_t chunk = std::max<int64_t>(1, detail::kLine / w.out[2]);
  int64_t chunks = (rows + chunk - 1) / chunk;
  int64_t blocks = (s.out_channels + detail::kChannelBlock - 1) / detail::kChannelBlock;
  auto tile = [&](int64_t index, std::vector<Acc>& sums, std::vector<Acc>& line) {
    int64_t begin = index % chunks * chunk, end = std::min(begin + chunk, rows);
    int64_t block = index / chunks % blocks, group = index / chunks / blocks % s.groups;
    int64_t image = index / chunks / blocks / s.groups, n = (end - begin) * w.out[2];
    int64_t first = group * s.out_channels + block * detail::kChannelBlock;
    int64_t last = std::min(first + detail::kChannelBlock, (group + 1) * s.out_channels);
    std::fill(sums.begin(), sums.end(), Acc(0));
    for (int64_t c = 0; c < s.in_channels; ++c) {
      int64_t plane = ((image * s.groups + group) * s.in_channels + c) * w.in_count();
      for (int64_t tap = 0; tap < taps; ++tap) {
        Window::Sizes at{tap / (w.kernel[1] * w.kernel[2]), tap / w.kernel[2] % w.kernel[1],
                         tap % w.kernel[2]};
        detail::read_line(w, at, plane, begin, end, load_x, line.data());
        for (int64_t o = first; o < last; ++o) {
          detail::add_scaled(sums.data() + (o - first) * n, line.data(),
                             load_w((o * s.in_channels + c) * taps + tap, o), n);
        }
      }
    }
    for (int64_t o = first; o < last; ++o) {
      int64_t to = (image * s.groups * s.out_channels + o) * w.out_count() + begin * w.out[2];
      for (int64_t j = 0; j < n; ++j)
        store(to + j, o, sums[static_cast<size_t>((o - first) * n + j)]);
    }
  };
  parallel_for(ctx, static_cast<uint64_t>(s.batch * s.groups * blocks * chunks), 1,
               [&](uint64_t from, uint64_t to) {
                 auto line = static_cast<size_t>(chunk * w.out[2]);
                 std::vector<Acc> sums(line * detail::kChannelBlock), values(line);
                 for (uint64_t i = from; i < to; ++i)
                   tile(static_cast<int64_t>(i), sums, values);
               });
}

}  // namespace tenon::ops
