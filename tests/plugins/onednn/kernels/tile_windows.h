// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions of 8-bit images whose sums loops compute, for products on tiles.

#include "tiles.h"

namespace tenon::onednn::kernels {

// {height, width, out_height, out_width, window_height, window_width, stride_y, stride_x, step_y,
//  step_x, pad_top, pad_left}
struct Geometry {
  Windows windows;
  int64_t images, channels, columns;
};

struct Convolution {
  Geometry g;
  int64_t k;
  bool has_planes;  // [images, channels, height, width]
  Guarded images;
  std::vector<int8_t> weights;  // [columns, window, channels]
  std::vector<char> packed;

  Convolution(const Geometry& of, uint32_t seed, bool planes = false)
      : g(of),
        k(of.windows.window_height * of.windows.window_width * of.channels),
        has_planes(planes),
        images(static_cast<size_t>(of.images * of.windows.height * of.windows.width * of.channels)),
        weights(static_cast<size_t>(k * of.columns)),
        packed(static_cast<size_t>(packed_tile_bytes(ElementType::kS8, k, of.columns))) {
    std::mt19937 random(seed);
    const Windows& w = g.windows;
    for (int64_t i = 0; i < g.images * w.height * w.width * g.channels; ++i)
      images.data()[i] = static_cast<char>(random());
    for (int8_t& weight : weights)
      weight = static_cast<int8_t>(random());
    pack_tiles(ElementType::kS8, weights.data(), 1, k, k, g.columns, packed.data());
  }

  int64_t quantized_at(
      int64_t image, int64_t y, int64_t x, int64_t c, bool is_signed, int64_t zero) const {
    const Windows& w = g.windows;
    if (y < 0 || y >= w.height || x < 0 || x >= w.width) return zero;
    const int64_t place = has_planes ? ((image * g.channels + c) * w.height + y) * w.width + x
                                     : ((image * w.height + y) * w.width + x) * g.channels + c;
    const char at = images.data()[place];
    return is_signed ? static_cast<int8_t>(at) : static_cast<uint8_t>(at);
  }
  int64_t sum(int64_t row, int64_t column, bool is_signed, int64_t zero) const {
    const Windows& w = g.windows;
    const int64_t x = row % w.out_width, y = row / w.out_width % w.out_height;
    const int64_t image = row / (w.out_width * w.out_height);
    const int8_t* weight = &weights[static_cast<size_t>(column * k)];
    int64_t sum = 0;
    for (int64_t i = 0; i < w.window_height; ++i)
      for (int64_t j = 0; j < w.window_width; ++j)
        for (int64_t c = 0; c < g.channels; ++c)
          sum += *weight++ * quantized_at(image, y * w.stride_y - w.pad_top + i * w.step_y,
                                          x * w.stride_x - w.pad_left + j * w.step_x, c, is_signed,
                                          zero);
    return sum;
  }
};

inline void expect_exact(const Convolution& conv,
                         TileProductArgs args,
                         bool is_signed,
                         size_t number) {
  const Geometry& g = conv.g;
  args.type = is_signed ? ElementType::kS8 : ElementType::kU8;
  args.a = conv.images.data();
  args.zero = is_signed ? 0xf3 : 113;  // -13
  args.m = g.images * g.windows.out_height * g.windows.out_width;
  args.n = g.columns;
  std::vector<int32_t> got(static_cast<size_t>(args.m * args.n));
  args.epilogue.dst = {got.data(), ElementType::kI32, {}};
  args.epilogue.dst_stride = args.n;
  tile_product({nullptr, {}}, args);
  const int64_t outside = is_signed ? -13 : 113;
  for (int64_t row = 0; row < args.m; ++row)
    for (int64_t column = 0; column < args.n; ++column)
      ASSERT_EQ(got[static_cast<size_t>(row * args.n + column)],
                conv.sum(row, column, is_signed, outside))
          << "geometry " << number << ", row " << row << ", column " << column;
}

}  // namespace tenon::onednn::kernels
